-- The server's part of Holdfast's Redis store. It decides nothing about locks: it reads them for the protocol in
-- C++, and writes what that decided if nothing has changed meanwhile. Names and values come as KEYS and ARGV only.
-- A command costs more than what it does, so one command serves all locks of a batch wherever Redis has such a one.
--
-- KEYS   store, names, held, changed; then all locks, all audits, all queues, all alives, all tickets
-- ARGV   store_id ('' while unknown), store_id to create ('' to create nothing), clock of a test ('' in production),
--        earliest and latest TIME in ms at which to write ('' to only look), number of locks;
--        for each lock: name, value that it must have ('' if it was never used, '*' if it cannot be read and nothing
--        will be written to it), how many tickets to read and the ids of further ones, and what changes: '' for
--        nothing, or five digits 0 or 1 (is freed, is taken, is new, has another record, has a queue) and the number of
--        events;
--        for each lock that changes: value, time of its newest event, events; and if it has a queue: number of tickets
--        to drop, ids, number of tickets to put, for each id, number, end, value; until when to sweep, whom to wake.
--
-- Answers {'seen', store_id, TIME in ms, locks...}, {'done', store_id, TIME in ms}, or why not: {'none', TIME in ms},
-- {'gone'}, {'other', store_id}, {'format', number}.
local KEYS, ARGV, redis, unpack = KEYS, ARGV, redis, unpack
local known, proposed, judged, earliest, latest, count = unpack(ARGV, 1, 6)
count = tonumber(count)

-- Where the keys of each kind begin, and the words for each lock.
local lock_key, audit_key, queue_key, alive_key, tickets_key =
  4, 4 + count, 4 + 2 * count, 4 + 3 * count, 4 + 4 * count
local function words_of(i) return 3 + 4 * i end

-- From where to where to cut a list: Lua cannot pass more than a few thousand arguments. An even number, for pairs.
local function slices(size)
  local to = 0
  return function()
    if to >= size then return nil end
    local from = to + 1
    to = math.min(to + 1000, size)
    return from, to
  end
end

-- Once: two calls in one script can differ, and everything here happens at one moment.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local now_text = string.format('%.0f', now)

local store = redis.call('HMGET', KEYS[1], 'format', 'store_id')
if store[1] and store[1] ~= '1' then return {'format', store[1]} end
if known ~= '' and not store[2] then return {'gone'} end
if known ~= '' and store[2] ~= known then return {'other', store[2]} end
if not store[2] then
  if proposed == '' then return {'none', now_text} end
  redis.call('HSET', KEYS[1], 'format', '1', 'store_id', proposed)
  store[2] = proposed
end

-- False also for a key of another kind.
local values = {}
for from, to in slices(count) do
  local found = redis.call('MGET', unpack(KEYS, lock_key + from, lock_key + to))
  if from == 1 then values = found else for i = from, to do values[i] = found[i - from + 1] end end
end

-- Whether none of these locks without a value has left traces: otherwise it was lost, and the lock is not a free one.
local function were_never_used(locks)
  local keys, names = {}, {}
  for n, i in ipairs(locks) do
    keys[2 * n - 1], keys[2 * n], names[n] = KEYS[lock_key + i], KEYS[audit_key + i], ARGV[words_of(i)]
  end
  for from, to in slices(#keys) do
    if redis.call('EXISTS', unpack(keys, from, to)) > 0 then return false end
  end
  for from, to in slices(#names) do
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
    local wanted = ARGV[4 + 4 * i]
    if wanted == '' then
      size = size + 1
      unused[size] = i
    end
    if wanted ~= '*' and (values[i] or '') ~= wanted then return false end
  end
  return were_never_used(unused)
end

if not may_write() then
  local live_after = judged == '' and now or tonumber(judged)

  -- The first live tickets, and those that were asked for by id.
  local function tickets_of(i, size)
    local tickets, seen, live, from = {}, {}, 0, 0
    local next_word = string.gmatch(ARGV[words_of(i) + 2], '%S+')
    local depth = tonumber(next_word())
    local function add(id)
      if not seen[id] then tickets[#tickets + 1] = redis.call('HGET', KEYS[tickets_key + i], id) end
      seen[id] = true
    end
    while live < depth and from < size do
      local page = redis.call('ZRANGE', KEYS[queue_key + i], from, from + depth - 1)
      for _, id in ipairs(page) do
        local ends = redis.call('ZSCORE', KEYS[alive_key + i], id)
        if live < depth and (not ends or tonumber(ends) > live_after) then
          add(id)
          live = live + 1
        end
      end
      from = from + #page
    end
    for id in next_word do
      if redis.call('ZSCORE', KEYS[queue_key + i], id) then add(id) end
    end
    return tickets
  end

  -- {value, waiters, last number, tickets}, or {} for a lock that cannot be read.
  local function read(i)
    local size = redis.pcall('ZCARD', KEYS[queue_key + i])
    if type(size) == 'table' then return {} end
    if not values[i] and not were_never_used({i}) then return {} end
    if size == 0 then return {values[i], 0, '0', {}} end
    local waiters = redis.call('ZCOUNT', KEYS[alive_key + i], '(' .. string.format('%.0f', live_after), '+inf')
    local last = redis.call('ZRANGE', KEYS[queue_key + i], -1, -1, 'WITHSCORES')
    return {values[i], waiters, last[2], tickets_of(i, size)}
  end

  local answer = {'seen', store[2], now_text}
  for i = 1, count do answer[i + 3] = read(i) end
  return answer
end

-- From here on nothing may fail half way: Redis takes nothing back. So what can find a key of the wrong kind comes
-- first, and the values, which fit any key, last. Without memory the first write fails, and nothing was changed; unless
-- that is a ZREM, so a lock can always be released.
local freed, taken, new, changed, new_values, channels = {}, {}, {}, {}, {}, {}
-- For each lock that changes: which one, its first and its last event; and what happens to its queue, by its number.
local locks, first_events, last_events, queues = {}, {}, {}, {}
local writes, position = 0, 6 + 4 * count
local function take()
  position = position + 1
  return ARGV[position]
end

-- Most changes of a batch are alike.
local outlines = {}
local function outline_of(what)
  local yes = string.byte('1')
  local freed, taken, new, record, queue = string.byte(what, 1, 5)
  local outline = {is_freed = freed == yes, is_taken = taken == yes, is_new = new == yes, has_record = record == yes,
                   has_queue = queue == yes, events = tonumber(string.sub(what, 6))}
  outlines[what] = outline
  return outline
end

local function queue_change()
  local dropped, put = {}, {}
  for n = 1, tonumber(take()) do dropped[n] = take() end
  for n = 1, tonumber(take()) do put[n] = {id = take(), number = take(), ends = take(), value = take()} end
  return {dropped = dropped, put = put, sweep_until = take(), next = take()}
end

local function add_pair(list, first, second)
  local size = #list
  list[size + 1], list[size + 2] = first, second
end

for i = 1, count do
  local words = words_of(i)
  local what = ARGV[words + 3]
  if what ~= '' then
    local outline = outlines[what] or outline_of(what)
    local name, key = ARGV[words], KEYS[lock_key + i]
    if outline.is_freed then freed[#freed + 1] = name end
    if outline.is_taken then add_pair(taken, '0', name) end
    if outline.is_new then add_pair(new, '0', name) end
    if outline.has_record then
      add_pair(changed, ARGV[position + 2], name)
      channels[#channels + 1] = key
    end
    add_pair(new_values, key, ARGV[position + 1])
    writes = writes + 1
    locks[writes], first_events[writes], last_events[writes] = i, position + 3, position + 2 + outline.events
    position = position + 2 + outline.events
    if outline.has_queue then
      local queue = queue_change()
      queues[writes] = queue
      if queue.next ~= '' then channels[#channels + 1] = queue.next end
    end
    -- One that was never used has no such key, see above.
    if ARGV[words + 1] ~= '' then redis.call('LLEN', KEYS[audit_key + i]) end
  end
end

for from, to in slices(#freed) do redis.call('ZREM', KEYS[3], unpack(freed, from, to)) end
for from, to in slices(#taken) do redis.call('ZADD', KEYS[3], unpack(taken, from, to)) end
for from, to in slices(#changed) do redis.call('ZADD', KEYS[4], unpack(changed, from, to)) end
for from, to in slices(#new) do redis.call('ZADD', KEYS[2], unpack(new, from, to)) end

local function write_queue(i, change)
  local queue, alive, tickets = KEYS[queue_key + i], KEYS[alive_key + i], KEYS[tickets_key + i]
  local dropped = change.dropped
  -- Who no longer waits stands in nobody's way, and goes a few at a time.
  if change.sweep_until ~= '' then
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', alive, '-inf', change.sweep_until, 'LIMIT', 0, 100)) do
      dropped[#dropped + 1] = id
    end
  end
  for from, to in slices(#dropped) do
    redis.call('ZREM', queue, unpack(dropped, from, to))
    redis.call('ZREM', alive, unpack(dropped, from, to))
    redis.call('HDEL', tickets, unpack(dropped, from, to))
  end
  for _, ticket in ipairs(change.put) do
    redis.call('ZADD', queue, ticket.number, ticket.id)
    redis.call('ZADD', alive, ticket.ends, ticket.id)
    redis.call('HSET', tickets, ticket.id, ticket.value)
  end
end
for n = 1, writes do
  if queues[n] then write_queue(locks[n], queues[n]) end
end

for n = 1, writes do
  local first, last = first_events[n], last_events[n]
  if first == last then
    redis.call('RPUSH', KEYS[audit_key + locks[n]], ARGV[first])
  else
    for from, to in slices(last - first + 1) do
      redis.call('RPUSH', KEYS[audit_key + locks[n]], unpack(ARGV, first + from - 1, first + to - 1))
    end
  end
end
for from, to in slices(#new_values) do redis.call('MSET', unpack(new_values, from, to)) end

-- Hints: who may not publish goes without. Mostly nobody listens, which is told of many channels at once.
for from, to in slices(#channels) do
  local ears = to > from and redis.pcall('PUBSUB', 'NUMSUB', unpack(channels, from, to)) or {err = 'not asked'}
  for n = from, to do
    if ears.err or ears[2 * (n - from + 1)] > 0 then redis.pcall('PUBLISH', channels[n], '') end
  end
end
return {'done', store[2], now_text}
