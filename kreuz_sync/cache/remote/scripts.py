"""The steps on the server. Each is one script: no one sees a half of it, and its clock stands still meanwhile.

A script is told all keys that it touches, and they are in one slot of a cluster. Times are whole
milliseconds, ages and moments whole microseconds by the server's clock: no machine's clock matters
but that. `''` stands for what is not given; as a time to live it is for ever.
"""

from __future__ import annotations

from hashlib import sha1


class Script:
    """A text in Lua, and the name that a server gives it."""

    __slots__ = ("digest", "text")

    def __init__(self, *parts: str) -> None:
        self.text = "".join(parts).encode()
        self.digest = sha1(self.text, usedforsecurity=False).hexdigest().encode()


_TIMES = """
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function whole(number) -- as a text that no digit is cut from
  return string.format('%.0f', number)
end
"""

_LIFE = """
local function live(key, ttl)
  if ttl == '' then redis.call('PERSIST', key) else redis.call('PEXPIRE', key, ttl) end
end
-- A group lives as long as the last of its records. left: what PTTL gave before the change.
local function live_on(key, left, ttl)
  if ttl == '' then
    redis.call('PERSIST', key)
  elseif left == -2 or (left >= 0 and left < tonumber(ttl)) then
    redis.call('PEXPIRE', key, ttl)
  end
end
"""

# --- one record -------------------------------------------------------------------------------

# KEYS: group, record. ARGV: field, the value that is held. Gives 1 if that is the record's still.
READ = Script("""
local value = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(value) ~= 'string' then return false end
if value == ARGV[2] then return 1 end
local found = redis.pcall('HMGET', KEYS[2], 'value', 'sum', 'head', 'facts', 'body')
if found.err then found = {} end
return {value, found[1] or '', found[2] or '', found[3] or '', found[4] or '', found[5] or ''}
""")

# KEYS: group, record. ARGV: field. Gives the value, and value, sum and head of the record.
READ_HEAD = Script("""
local value = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(value) ~= 'string' then return false end
local found = redis.pcall('HMGET', KEYS[2], 'value', 'sum', 'head')
if found.err then found = {} end
return {value, found[1] or '', found[2] or '', found[3] or ''}
""")

# KEYS: group, record, body. ARGV: field, value, sum, head, facts, body, ttl, the age of what is to be kept, pieces.
# Gives the value of what was there before, 0 if the group was dropped within that age, 1 if the body is not there.
PUT = Script(
    *(_TIMES, _LIFE),
    """
local field, value, ttl, age, pieces = ARGV[1], ARGV[2], ARGV[7], ARGV[8], tonumber(ARGV[9])
local left = redis.call('PTTL', KEYS[1])
if age ~= '' then
  local dropped = redis.call('HGET', KEYS[1], 'dropped')
  if dropped and now() - age <= tonumber(dropped) then return 0 end
end
if pieces > 0 then
  if redis.call('HLEN', KEYS[3]) ~= pieces then return 1 end
  live(KEYS[3], ttl)
end
local before = redis.call('HGET', KEYS[1], field)
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[2], 'value', value, 'sum', ARGV[3], 'head', ARGV[4], 'facts', ARGV[5], 'body', ARGV[6])
live(KEYS[2], ttl)
redis.call('HSET', KEYS[1], field, value)
live_on(KEYS[1], left, ttl)
return before or ''
""",
)

# KEYS: group, record. ARGV: field, the first part of the new value, sum, head, 'if' or '', the head that must be
# there, ttl. Gives the new value and the facts.
REWRITE = Script(
    _LIFE,
    """
local field, ttl = ARGV[1], ARGV[7]
local value = redis.call('HGET', KEYS[1], field)
local found = redis.call('HMGET', KEYS[2], 'value', 'head', 'facts')
if not value or found[1] ~= value or (ARGV[5] == 'if' and found[2] ~= ARGV[6]) then return false end
local new = ARGV[2] .. string.sub(value, #ARGV[2] + 1)
redis.call('HSET', KEYS[2], 'value', new, 'sum', ARGV[3], 'head', ARGV[4])
redis.call('HSET', KEYS[1], field, new)
live(KEYS[2], ttl)
live_on(KEYS[1], redis.call('PTTL', KEYS[1]), ttl)
return {new, found[3] or ''}
""",
)

# KEYS: group, record. ARGV: field, the value it must have or ''. Gives the value of what is dropped.
DROP = Script("""
local value = redis.call('HGET', KEYS[1], ARGV[1])
if not value or (ARGV[2] ~= '' and value ~= ARGV[2]) then return false end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
return value
""")

# KEYS: group. ARGV: how long it is to be remembered. Gives the fields and values that were there.
DROP_GROUP = Script(
    _TIMES,
    """
local found = redis.call('HGETALL', KEYS[1])
redis.call('DEL', KEYS[1])
-- Memory may be short, and then it is not remembered.
redis.pcall('HSET', KEYS[1], 'dropped', whole(now()))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return found
""",
)

# --- a large body -----------------------------------------------------------------------------

# KEYS: body. ARGV: number of the piece, the piece, ttl until it is somebody's.
ADD_PIECE = Script("""
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
""")

# KEYS: body. ARGV: how many pieces there must be. Gives the first one.
OPEN_BODY = Script("""
if redis.call('HLEN', KEYS[1]) ~= tonumber(ARGV[1]) then return false end
return redis.call('HGET', KEYS[1], '0')
""")

# KEYS: body. ARGV: how long somebody may still be reading it, though nobody has it any more.
LET_GO = Script("""
local left = redis.call('PTTL', KEYS[1])
if left == -1 or left > tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
""")

# KEYS: body. ARGV: how long it is still read.
HOLD = Script("""
local left = redis.call('PTTL', KEYS[1])
if left >= 0 and left < tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
""")

# --- the index --------------------------------------------------------------------------------

_INDEX = """
local uses, facts = KEYS[1], KEYS[2]
local function size_of(kept) return tonumber(string.match(kept or '', '^%d+')) or 0 end
-- The server may have evicted one of the two. What they listed is not known then.
local count = redis.call('ZCARD', uses)
if redis.call('HLEN', facts) ~= count + (count > 0 and 1 or 0) then
  redis.call('DEL', uses, facts)
  count = 0
end
local total = tonumber(redis.call('HGET', facts, 'total') or '0')
local function put_total()
  if count > 0 then redis.call('HSET', facts, 'total', whole(total)) else redis.call('DEL', facts) end
end
local function take(key)
  total, count = total - size_of(redis.call('HGET', facts, 'k' .. key)), count - 1
  redis.call('ZREM', uses, key)
  redis.call('HDEL', facts, 'k' .. key)
end
"""

# KEYS: uses, facts, secret. ARGV: our secret or '', ttl, most records, most bytes, how many may go at once, key,
# value, size or '' (then there is no record to list); then keys, each with the age of its use.
# Gives 1 if the secret is another one, else 0; then the keys of the records that have to go for the one that is listed.
LIST = Script(
    *(_TIMES, _LIFE, _INDEX),
    """
local ours, ttl, most, bytes = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local key, value, size = ARGV[6], ARGV[7], tonumber(ARGV[8])
local at, result = now(), {0}
-- Should the server's clock have been put back, what comes now is the newest all the same.
local newest = redis.call('ZREVRANGE', uses, 0, 0, 'WITHSCORES')
if newest[1] then at = math.max(at, tonumber(newest[2]) + 1) end
for place = 9, #ARGV, 2 do
  local known, used = redis.call('ZSCORE', uses, ARGV[place]), at - ARGV[place + 1]
  if known and tonumber(known) < used then redis.call('ZADD', uses, whole(used), ARGV[place]) end
end
if size then
  local before = redis.call('HGET', facts, 'k' .. key)
  total = total + size - size_of(before)
  if not before then count = count + 1 end
  redis.call('HSET', facts, 'k' .. key, whole(size) .. ' ' .. value)
  redis.call('ZADD', uses, whole(at), key)
end
for _ = 1, size and tonumber(ARGV[5]) or 0 do
  local oldest = redis.call('ZRANGE', uses, 0, 0, 'WITHSCORES')
  if not oldest[1] or oldest[1] == key then break end
  local is_over = (most > 0 and count > most) or (bytes > 0 and total > bytes)
  if not is_over and (ttl == '' or tonumber(oldest[2]) >= at - ttl * 1000) then break end
  take(oldest[1])
  result[#result + 1] = oldest[1]
end
put_total()
if ours ~= '' then
  local known = redis.call('GET', KEYS[3])
  if not known then redis.call('SET', KEYS[3], ours) elseif known ~= ours then result[1] = 1 end
  live(KEYS[3], ttl)
end
live(uses, ttl)
live(facts, ttl)
return result
""",
)

# KEYS: uses, facts. ARGV: keys, each with the value it must have or ''.
UNLIST = Script(
    *(_TIMES, _INDEX),
    """
for place = 1, #ARGV, 2 do
  local kept = redis.call('HGET', facts, 'k' .. ARGV[place])
  local value = string.match(kept or '', '^%d+ (.*)$')
  if value and (ARGV[place + 1] == '' or ARGV[place + 1] == value) then take(ARGV[place]) end
end
put_total()
""",
)

# KEYS: uses, facts. ARGV: how many. Gives the keys that were used longest ago, which are listed no more.
TAKE = Script(
    *(_TIMES, _INDEX),
    """
local keys = redis.call('ZRANGE', uses, 0, ARGV[1] - 1)
for _, key in ipairs(keys) do take(key) end
put_total()
return keys
""",
)

# KEYS: uses. ARGV: the moment to begin at, how many. Gives keys, each with the moment of its last use.
PAGE = Script("""
return redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
""")

# KEYS: secret. ARGV: one that was just made, its length, ttl. Gives the one that holds.
SECRET = Script(
    _LIFE,
    """
local known = redis.call('GET', KEYS[1])
if not known or #known ~= tonumber(ARGV[2]) then
  known = ARGV[1]
  redis.call('SET', KEYS[1], known)
end
live(KEYS[1], ARGV[3])
return known
""",
)
