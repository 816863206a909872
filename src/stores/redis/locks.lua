-- The server's part of Holdfast's Redis store. It decides nothing about locks: it reads them for the protocol in
-- C++, and writes what that decided if nothing has changed meanwhile. Names and values come as KEYS and ARGV only.
--
-- KEYS   store, names, held, changed; then for each lock: lock, queue, alive, audit
-- ARGV   store_id ('' while unknown), store_id to create ('' to create nothing), clock of a test ('' in production),
--        earliest and latest TIME in ms at which to write ('' to only look), number of locks;
--        for each lock: name, version it must have, how many tickets to read, number of ids, ids of further tickets;
--        number of locks to write; for each of them what `write` takes below.
--
-- Answers {'seen', store_id, TIME in ms, locks...}, {'done', store_id, TIME in ms}, or why not: {'none', TIME in ms},
-- {'gone'}, {'other', store_id}, {'format', number}.
local position = 0
local function take()
  position = position + 1
  return ARGV[position]
end
local function take_number() return tonumber(take()) end

local known, proposed, judged, earliest, latest, count = take(), take(), take(), take(), take(), take_number()

-- Once: two calls in one script can differ, and everything here happens at one moment.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local now_text = string.format('%.0f', now)
local live_after = judged == '' and now or tonumber(judged)

local store = redis.call('HMGET', KEYS[1], 'format', 'store_id')
if store[1] and store[1] ~= '1' then return {'format', store[1]} end
if known ~= '' and not store[2] then return {'gone'} end
if known ~= '' and store[2] ~= known then return {'other', store[2]} end
if not store[2] then
  if proposed == '' then return {'none', now_text} end
  redis.call('HSET', KEYS[1], 'format', '1', 'store_id', proposed)
  store[2] = proposed
end

local locks = {}
for i = 1, count do
  local lock = {name = take(), version = take(), depth = take_number(), own = {}}
  for own = 1, take_number() do lock.own[own] = take() end
  lock.key, lock.queue, lock.alive, lock.audit = KEYS[4 * i + 1], KEYS[4 * i + 2], KEYS[4 * i + 3], KEYS[4 * i + 4]
  locks[i] = lock
end

-- Whether a lock without a record has left traces: then the record was lost, and the lock is not a free one.
local function has_traces(lock)
  return redis.call('EXISTS', lock.audit) == 1 or redis.call('ZSCORE', KEYS[2], lock.name) ~= false
end

-- The version of a lock that cannot be read, and that nothing will be written to, is '*'.
local function unchanged(lock)
  if lock.version == '*' then return true end
  local version = redis.pcall('HGET', lock.key, 'ver')
  if lock.version ~= '' then return version == lock.version end
  return version == false and not has_traces(lock)
end

-- The first `depth` live tickets, and those that were asked for by id.
local function tickets_of(lock, size)
  local tickets, seen, live, from = {}, {}, 0, 0
  local function add(id)
    if not seen[id] then tickets[#tickets + 1] = redis.call('HGET', lock.key, 't:' .. id) end
    seen[id] = true
  end
  while live < lock.depth and from < size do
    for _, id in ipairs(redis.call('ZRANGE', lock.queue, from, from + 15)) do
      local ends = redis.call('ZSCORE', lock.alive, id)
      if live < lock.depth and (not ends or tonumber(ends) > live_after) then
        add(id)
        live = live + 1
      end
    end
    from = from + 16
  end
  for _, id in ipairs(lock.own) do
    if redis.call('ZSCORE', lock.queue, id) then add(id) end
  end
  return tickets
end

-- {version, record, waiters, last number, tickets}, or {} for a lock that cannot be read.
local function read(lock)
  local found = redis.pcall('HMGET', lock.key, 'ver', 'rec')
  local size = redis.pcall('ZCARD', lock.queue)
  if found.err or type(size) == 'table' then return {} end
  if not found[2] and has_traces(lock) then return {} end
  if size == 0 then return {found[1] or '', found[2], 0, '0', {}} end
  local waiters = redis.call('ZCOUNT', lock.alive, '(' .. string.format('%.0f', live_after), '+inf')
  local last = redis.call('ZRANGE', lock.queue, -1, -1, 'WITHSCORES')
  return {found[1] or '', found[2], waiters, last[2], tickets_of(lock, size)}
end

local function may_write()
  if earliest == '' or now < tonumber(earliest) or now > tonumber(latest) then return false end
  for _, lock in ipairs(locks) do
    if not unchanged(lock) then return false end
  end
  return true
end

if not may_write() then
  local answer = {'seen', store[2], now_text}
  for i, lock in ipairs(locks) do answer[i + 3] = read(lock) end
  return answer
end

-- From here on nothing may fail half way: Redis takes nothing back. So what can find a key of the wrong kind comes
-- first, and the record, whose key was read above, last. Without memory the first write fails, and nothing was changed;
-- unless that is a ZREM, so a lock can always be released.
local writes = {}
for i = 1, take_number() do
  local write = {lock = locks[take_number()], version = take(), record = take(), is_new = take(), held = take(),
                 changed_at = take(), events = {}, dropped = {}, put = {}}
  for n = 1, take_number() do write.events[n] = take() end
  for n = 1, take_number() do write.dropped[n] = take() end
  for n = 1, take_number() do write.put[n] = {id = take(), number = take(), ends = take(), value = take()} end
  write.sweep_until, write.next = take(), take()
  writes[i] = write
end

if #writes > 1 then
  for _, write in ipairs(writes) do redis.call('LLEN', write.lock.audit) end
end

for _, write in ipairs(writes) do
  local lock = write.lock
  if write.held == '0' then redis.call('ZREM', KEYS[3], lock.name) end
  if write.held == '1' then redis.call('ZADD', KEYS[3], 0, lock.name) end
  if write.record ~= '' then redis.call('ZADD', KEYS[4], write.changed_at, lock.name) end
  if write.is_new == '1' then redis.call('ZADD', KEYS[2], 0, lock.name) end
  -- Who no longer waits stands in nobody's way, and goes a few at a time.
  if write.sweep_until ~= '' then
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', lock.alive, '-inf', write.sweep_until, 'LIMIT', 0, 100)) do
      write.dropped[#write.dropped + 1] = id
    end
  end
  for _, id in ipairs(write.dropped) do
    redis.call('ZREM', lock.queue, id)
    redis.call('ZREM', lock.alive, id)
    redis.call('HDEL', lock.key, 't:' .. id)
  end
  for _, ticket in ipairs(write.put) do
    redis.call('ZADD', lock.queue, ticket.number, ticket.id)
    redis.call('ZADD', lock.alive, ticket.ends, ticket.id)
    redis.call('HSET', lock.key, 't:' .. ticket.id, ticket.value)
  end
end
for _, write in ipairs(writes) do
  -- In slices: Lua cannot pass more than a few thousand arguments.
  for from = 1, #write.events, 1000 do
    redis.call('RPUSH', write.lock.audit, unpack(write.events, from, math.min(from + 999, #write.events)))
  end
end
for _, write in ipairs(writes) do
  local lock = write.lock
  if write.record == '' then
    redis.call('HSET', lock.key, 'ver', write.version)
  else
    redis.call('HSET', lock.key, 'ver', write.version, 'rec', write.record)
    -- Hints: who may not publish goes without.
    redis.pcall('PUBLISH', lock.key, '')
  end
  if write.next ~= '' then redis.pcall('PUBLISH', write.next, '') end
end
return {'done', store[2], now_text}
