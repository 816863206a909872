-- The server's part of Holdfast's Redis store. It decides nothing about locks: it reads them for the protocol in
-- C++, and writes what that decided if nothing has changed meanwhile. Names and values come as KEYS and ARGV only.
-- A command costs more than what it does, so one command serves all locks of a batch wherever Redis has such a one;
-- and every argument costs, so the keys of a queue, which most locks do not have, are made here.
--
-- KEYS   store, names, held, changed; then all locks, all audits
-- ARGV   store_id ('' while unknown), store_id to create ('' to create and upgrade nothing), clock of a test ('' in production),
--        earliest and latest TIME in ms at which to write ('' to only look), number of locks;
--        for each lock: name; value that it must have ('' if it was never used, '*' if it cannot be read and nothing
--        will be written to it, '-' if it must have none although it was used); how many tickets to read and the ids of further ones; what changes: '' for nothing, or
--        six digits 0 or 1 (is freed, is taken, is new, has another record, has a queue, loses all of its queue) and
--        the number of events,
--        and if old events are cut: a space and how many of those that are there stay, the newest ones;
--        value, time of its newest event and first event to write;
--        for each lock that has more to write: further events; and if it has a queue: number of tickets to drop, ids,
--        number of tickets to put, for each id, number, end, value; until when to sweep, two channels of those to wake.
--
-- Answers {'seen', store_id, TIME in ms, '1' if the store has had a lock or '', locks...}, {'done', store_id, TIME in
-- ms}, or why not: {'none', TIME in ms}, {'gone'}, {'other', store_id}, {'format', number}.
local KEYS, ARGV, redis, unpack = KEYS, ARGV, redis, unpack
local known, proposed, judged, earliest, latest, count = unpack(ARGV, 1, 6)
count = tonumber(count)

-- Where the keys of locks and of audits begin. The words of lock i begin at ARGV[7 * i].
local lock_key, audit_key = 4, 4 + count

-- `for from, to in slice, SIZE, 0` cuts a list: Lua cannot pass more than a few thousand arguments. An even number, for
-- pairs.
local function slice(size, last)
  local from = last == 0 and 1 or last + 1000
  if from > size then return nil end
  return from, math.min(from + 999, size)
end

-- {PREFIX}:queue:NAME and so on: in the slot of a cluster where all keys of the store are.
local function keys_of_queue(i)
  local root, name = string.match(KEYS[1], '^(.*)store$'), ARGV[7 * i]
  return root .. 'queue:' .. name, root .. 'alive:' .. name, root .. 'tickets:' .. name
end

-- Once: two calls in one script can differ, and everything here happens at one moment.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local now_text = string.format('%.0f', now)

local store = redis.call('HMGET', KEYS[1], 'format', 'store_id', 'used')
local our_format, old_format = '2', '1'
if store[1] and store[1] ~= our_format and store[1] ~= old_format then return {'format', store[1]} end
if known ~= '' and not store[2] then return {'gone'} end
if known ~= '' and store[2] ~= known then return {'other', store[2]} end
if not store[2] then
  if proposed == '' then return {'none', now_text} end
  redis.call('HSET', KEYS[1], 'format', our_format, 'store_id', proposed)
  store[2] = proposed
end
-- Whoever changes something may write events that older programs cannot read. From here on they are refused.
if store[1] == old_format and (proposed ~= '' or earliest ~= '') then
  redis.call('HSET', KEYS[1], 'format', our_format)
end

-- False also for a key of another kind.
local values = {}
for from, to in slice, count, 0 do
  local found = redis.call('MGET', unpack(KEYS, lock_key + from, lock_key + to))
  if from == 1 then values = found else for i = from, to do values[i] = found[i - from + 1] end end
end

-- Whether none of these locks without a value has left traces: otherwise it was lost, and the lock is not a free one.
local function were_never_used(locks)
  local keys, names = {}, {}
  for n, i in ipairs(locks) do
    keys[2 * n - 1], keys[2 * n], names[n] = KEYS[lock_key + i], KEYS[audit_key + i], ARGV[7 * i]
  end
  for from, to in slice, #keys, 0 do
    if redis.call('EXISTS', unpack(keys, from, to)) > 0 then return false end
  end
  for from, to in slice, #names, 0 do
    local scores = redis.pcall('ZMSCORE', KEYS[2], unpack(names, from, to))
    for n = from, to do
      -- Redis has had ZMSCORE since 6.2.
      local score = scores[n - from + 1]
      if scores.err then score = redis.call('ZSCORE', KEYS[2], names[n]) end
      if score then return false end
    end
  end
  return true
end

local function may_write()
  if earliest == '' or now < tonumber(earliest) or now > tonumber(latest) then return false end
  local unused, size = {}, 0
  for i = 1, count do
    local wanted = ARGV[7 * i + 1]
    if wanted == '' then
      size = size + 1
      unused[size] = i
    end
    if wanted == '-' then wanted = '' end
    if wanted ~= '*' and (values[i] or '') ~= wanted then return false end
  end
  return were_never_used(unused)
end

if not may_write() then
  local live_after = judged == '' and now or tonumber(judged)

  -- The first live tickets, and those that were asked for by id.
  local function tickets_of(i, size)
    local queue, alive, tickets = keys_of_queue(i)
    local found, seen, live, from = {}, {}, 0, 0
    local next_word = string.gmatch(ARGV[7 * i + 2], '%S+')
    local depth = tonumber(next_word())
    local function add(id)
      if not seen[id] then found[#found + 1] = redis.call('HGET', tickets, id) end
      seen[id] = true
    end
    while live < depth and from < size do
      local page = redis.call('ZRANGE', queue, from, from + depth - 1)
      for _, id in ipairs(page) do
        local ends = redis.call('ZSCORE', alive, id)
        if live < depth and (not ends or tonumber(ends) > live_after) then
          add(id)
          live = live + 1
        end
      end
      from = from + #page
    end
    for id in next_word do
      if redis.call('ZSCORE', queue, id) then add(id) end
    end
    return found
  end

  -- {value, waiters, last number, tickets}, or {} for a lock that cannot be read.
  local function read(i)
    local queue, alive = keys_of_queue(i)
    local size = redis.pcall('ZCARD', queue)
    if type(size) == 'table' then return {values[i]} end
    if not values[i] and not were_never_used({i}) then return {} end
    if size == 0 then return {values[i], 0, '0', {}} end
    local waiters = redis.call('ZCOUNT', alive, '(' .. string.format('%.0f', live_after), '+inf')
    local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')
    return {values[i], waiters, last[2], tickets_of(i, size)}
  end

  local answer = {'seen', store[2], now_text, store[3] or ''}
  for i = 1, count do answer[i + 4] = read(i) end
  return answer
end

-- From here on nothing may fail half way: Redis takes nothing back. So what can find a key of the wrong kind comes
-- first, and the values, which fit any key, last. Without memory the first write fails, and nothing was changed; unless
-- that is an LTRIM or a ZREM, so a lock can always be released, and a full server be pruned.
local freed, taken, new, changed, new_values, further_events, called = {}, {}, {}, {}, {}, {}, {}
local cut = {}

-- Most changes of a batch are alike.
local outlines = {[''] = false}
local function outline_of(i)
  local what = ARGV[7 * i + 3]
  if outlines[what] == nil then
    local yes = string.byte('1')
    local a, b, c, d, e, f = string.byte(what, 1, 6)
    local events, stay = string.match(what, '(%d+) ?(%d*)', 7)
    outlines[what] = {is_freed = a == yes, is_taken = b == yes, is_new = c == yes, has_record = d == yes,
                      has_queue = e == yes, loses_queue = f == yes, events = tonumber(events), stay = stay ~= '' and stay}
  end
  return outlines[what]
end

local function add_pair(list, first, second)
  local size = #list
  list[size + 1], list[size + 2] = first, second
end

for i = 1, count do
  local outline = outline_of(i)
  if outline then
    local name = ARGV[7 * i]
    if outline.is_freed then freed[#freed + 1] = name end
    if outline.is_taken then add_pair(taken, '0', name) end
    if outline.is_new then add_pair(new, '0', name) end
    if outline.has_record then add_pair(changed, ARGV[7 * i + 5], name) end
    if outline.stay then add_pair(cut, KEYS[audit_key + i], outline.stay) end
    add_pair(new_values, KEYS[lock_key + i], ARGV[7 * i + 4])
    -- One that was never used has no such key, see above.
    if ARGV[7 * i + 1] ~= '' then redis.call('LLEN', KEYS[audit_key + i]) end
  end
end

-- What was cut does not come back, so all other keys are looked at before.
if #cut > 0 then
  for k = 2, 4 do redis.call('ZCARD', KEYS[k]) end
  for i = 1, count do
    if outline_of(i) and outline_of(i).has_queue then
      local queue, alive, tickets = keys_of_queue(i)
      redis.call('ZCARD', queue)
      redis.call('ZCARD', alive)
      redis.call('HLEN', tickets)
    end
  end
end
for n = 1, #cut, 2 do
  local from, to = '-' .. cut[n + 1], '-1'
  if cut[n + 1] == '0' then from, to = '1', '0' end
  local done = redis.pcall('LTRIM', cut[n], from, to)
  -- The right that only pruning needs. Up to Redis 7.0 a script is told of a missing one without the code.
  if done.err and string.find(done.err, "can't run this command", 1, true) then
    return redis.error_reply('NOPERM LTRIM, which removes audit events')
  end
  if done.err then return done end
end

-- The right that only a repair needs. What else is left of the queue, of whatever kind, means nothing.
for i = 1, count do
  if outline_of(i) and outline_of(i).loses_queue then
    local done = redis.pcall('DEL', keys_of_queue(i))
    if type(done) == 'table' and done.err then return done end
  end
end

for from, to in slice, #freed, 0 do redis.call('ZREM', KEYS[3], unpack(freed, from, to)) end
for from, to in slice, #taken, 0 do redis.call('ZADD', KEYS[3], unpack(taken, from, to)) end
for from, to in slice, #changed, 0 do redis.call('ZADD', KEYS[4], unpack(changed, from, to)) end
for from, to in slice, #new, 0 do redis.call('ZADD', KEYS[2], unpack(new, from, to)) end
-- So that a store without locks tells whether somebody removed them. A user without the right to it goes without.
if #new > 0 and not store[3] then redis.pcall('HSET', KEYS[1], 'used', '1') end

-- What follows the words of the locks. Functions are made where they are needed, since that costs, too.
if #ARGV > 7 * count + 6 then
  local position = 7 * count + 6
  local function take()
    position = position + 1
    return ARGV[position]
  end

  local function write_queue(i)
    local queue, alive, tickets = keys_of_queue(i)
    local dropped, put = {}, {}
    for n = 1, tonumber(take()) do dropped[n] = take() end
    for n = 1, tonumber(take()) do put[n] = {id = take(), number = take(), ends = take(), value = take()} end
    local sweep_until = take()
    called[#called + 1] = take()
    called[#called + 1] = take()
    -- Tickets that have run out block nobody, and are removed a few at a time.
    if sweep_until ~= '' then
      for _, id in ipairs(redis.call('ZRANGEBYSCORE', alive, '-inf', sweep_until, 'LIMIT', 0, 100)) do
        dropped[#dropped + 1] = id
      end
    end
    for from, to in slice, #dropped, 0 do
      redis.call('ZREM', queue, unpack(dropped, from, to))
      redis.call('ZREM', alive, unpack(dropped, from, to))
      redis.call('HDEL', tickets, unpack(dropped, from, to))
    end
    for _, ticket in ipairs(put) do
      redis.call('ZADD', queue, ticket.number, ticket.id)
      redis.call('ZADD', alive, ticket.ends, ticket.id)
      redis.call('HSET', tickets, ticket.id, ticket.value)
    end
  end

  for i = 1, count do
    local outline = outline_of(i)
    if outline and outline.events > 1 then
      further_events[i] = position
      position = position + outline.events - 1
    end
    if outline and outline.has_queue then write_queue(i) end
  end
end

for i = 1, count do
  local outline = outline_of(i)
  if outline and outline.events > 0 then redis.call('RPUSH', KEYS[audit_key + i], ARGV[7 * i + 6]) end
  local before = further_events[i]
  if before then
    for from, to in slice, outline.events - 1, 0 do
      redis.call('RPUSH', KEYS[audit_key + i], unpack(ARGV, before + from, before + to))
    end
  end
end
for from, to in slice, #new_values, 0 do redis.call('MSET', unpack(new_values, from, to)) end

-- Announcements are hints: a user that may not publish goes without. Mostly nobody listens, and one command tells that of
-- many locks.
for from, to in slice, count, 0 do
  local listeners = count > 1 and redis.pcall('PUBSUB', 'NUMSUB', unpack(KEYS, lock_key + from, lock_key + to))
  for i = from, to do
    local is_heard = not listeners or listeners.err or listeners[2 * (i - from + 1)] > 0
    if is_heard and outline_of(i) and outline_of(i).has_record then redis.pcall('PUBLISH', KEYS[lock_key + i], '') end
  end
end
for _, channel in ipairs(called) do
  if channel ~= '' then redis.pcall('PUBLISH', channel, '') end
end
return {'done', store[2], now_text}
