"""The steps on a Redis server. Each is one script: no one sees a half of it, and its clock stands still meanwhile.

There is one hash for each host. Moments are whole microseconds by the server's clock, no machine's; durations are
whole microseconds too. The rules are those of `pace.py`, of which this is the other
half; `plan.py` is the same in Python:

    epoch      grows with every change after which the slots that are claimed are void
    at         when it was written last
    started    when the latest request was let go
    next       the first slot that nobody has claimed
    paused     the end of the pause; cut: see `Gate`
    backoff, floor, raised, successes, unreached: see `Pace`
    buckets    the end of the last pause of a bucket; for each of them `b:NAME` has the end of its pause, and `cut`
"""

from __future__ import annotations

from kreuz_sync.cache.remote.scripts import Script
from kreuz_sync.throttle.gate import PROBE_S
from kreuz_sync.throttle.pace import FORGET_S, NEGLIGIBLE_S, SUCCESSES, UNREACHABLE

from .plan import LINGER_S

_CONSTANTS = f"""
local SUCCESSES, UNREACHABLE = {SUCCESSES}, {UNREACHABLE}
local NEGLIGIBLE, PROBE = {NEGLIGIBLE_S * 1e6:.0f}, {PROBE_S * 1e6:.0f}
local LINGER, FORGET = {LINGER_S * 1e6:.0f}, {FORGET_S * 1e6:.0f}
"""

# ARGV, 1 to 11: delay, max_delay, first_backoff; what the asker knows: 1 if that is to be joined with what is here,
# 1 if it has had an answer about this host a moment ago, backoff, floor, raised, what is left of the pause, cut, and
# the time since its latest request if that went without leave, or -1.
_OPEN = """
local key = KEYS[1]
local function given(place) return tonumber(ARGV[place]) or 0 end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local got = redis.call('HMGET', key, 'epoch', 'at', 'started', 'next', 'paused', 'cut',
  'backoff', 'floor', 'raised', 'successes', 'unreached', 'buckets')
local function found(place) return tonumber(got[place] or '0') or 0 end
local is_new = not got[1]
local epoch, at, started, next_slot, paused, cut = found(1), found(2), found(3), found(4), found(5), found(6)
local backoff, floor, raised, successes, unreached = found(7), found(8), found(9), found(10), found(11)
local buckets = found(12)
local function delay() return math.max(given(1), backoff, floor) end
local function plan_anew()
  epoch = epoch + 1
  next_slot = math.max(started + delay(), paused)
end
if is_new then epoch = now end
if at > now then -- the clock was put back: what was so far away is so far away still
  started, next_slot, paused, buckets = started - at + now, next_slot - at + now, paused - at + now, 0
  epoch = epoch + 1
end
if is_new or given(4) == 1 then
  -- New here, or lost in a restart, or the asker went on alone for a while.
  local before = delay()
  backoff, floor, raised = math.max(backoff, given(6)), math.max(floor, given(7)), math.max(raised, given(8))
  if given(11) >= 0 then started = math.max(started, now - given(11)) end
  if is_new and given(5) == 1 then started = now end -- others may have sent something just now
  local is_paused = given(9) > 0 and now + given(9) > paused
  if is_paused then paused, cut = now + given(9), given(10) end
  if is_new or is_paused or delay() > before then plan_anew() end
end
local function raise()
  local most = math.max(given(2), floor)
  local doubled = math.min(delay() > 0 and 2 * delay() or given(3), most)
  if doubled > delay() then
    backoff, raised = doubled, raised + 1
    plan_anew()
  end
end
"""

_CLOSE = """
local function answer(code, wait, claim)
  local list = {}
  if buckets > now then
    local all = redis.call('HGETALL', key)
    for place = 1, #all, 2 do
      local name = string.match(all[place], '^b:(.*)$')
      if name then
        local ends, of_cut = string.match(all[place + 1], '^(%d+) (%d)$')
        if tonumber(ends) > now then
          list[#list + 1] = name
          list[#list + 1] = tonumber(ends) - now
          list[#list + 1] = tonumber(of_cut)
        else
          redis.call('HDEL', key, all[place])
        end
      end
    end
  end
  local function whole(number) return string.format('%.0f', number) end
  redis.call('HSET', key, 'epoch', whole(epoch), 'at', whole(now), 'started', whole(started), 'next', whole(next_slot),
    'paused', whole(paused), 'cut', cut, 'backoff', whole(backoff), 'floor', whole(floor), 'raised', whole(raised),
    'successes', successes, 'unreached', unreached, 'buckets', whole(buckets))
  local lasts = math.max(started + delay(), next_slot, paused, buckets, now) - now + LINGER
  if backoff > 0 or floor > 0 then lasts = lasts + FORGET end
  redis.call('PEXPIRE', key, whole(math.ceil(lasts / 1000)))
  return {code, wait, claim, epoch, now, math.max(0, paused - now), cut, backoff, floor, raised, successes, unreached,
    paused, list}
end
"""

# ARGV, from 12: the slot that the asker has claimed, or 0; the epoch of that; the most it would wait, or -1; the
# least time between two requests, which a quota may have made longer.
# Gives GO, or WAIT and for how long (the slot is the asker's), or TOO_LATE and how long it would have been (`plan.py`).
TAKE = Script(
    *(_CONSTANTS, _OPEN, _CLOSE),
    """
local claim, patience, gap = given(12), given(14), math.max(delay(), given(15))
local due = math.max(started + gap, paused)
local is_mine, slot = claim > 0 and given(13) == epoch, nil
if is_mine and now < claim then
  slot = math.max(claim, due)
elseif is_mine and due - now <= gap / 2 and (now - claim <= gap / 2 or next_slot <= claim + gap) then
  slot = due -- a little late, maybe since the one before was
else
  is_mine, slot = false, math.max(due, next_slot)
end
if slot <= now then
  started = now
  next_slot = math.max(next_slot, now + gap)
  if cut == 1 then -- the others wait for its answer
    paused = now + PROBE
    plan_anew()
  end
  return answer(1, 0, 0)
end
if not is_mine then
  if patience >= 0 and slot - now > patience then return answer(2, slot - now, 0) end
  claim = slot
end
next_slot = math.max(next_slot, slot + gap)
return answer(0, slot - now, claim)
""",
)

# ARGV, from 12: what to learn, and of it:
#   answer   many, good, bad, failed or unreachable; the `raised` of its turn
#   floor    how long
#   pause    what is left, cut; the end that the asker knew of, for one that may become shorter, or -1
#   bucket   what is left of its pause, cut; its name
LEARN = Script(
    *(_CONSTANTS, _OPEN, _CLOSE),
    """
local what = ARGV[12]
if what == 'answer' then
  local how, under = ARGV[13], given(14)
  if how ~= 'failed' and how ~= 'unreachable' then unreached = 0 end
  if how == 'good' then
    if backoff > 0 and under >= raised then
      successes = successes + 1
      if successes >= SUCCESSES then
        successes = 0
        local halved = math.floor(backoff / 2)
        backoff = halved > math.max(given(1), floor, NEGLIGIBLE) and halved or 0
      end
    end
  elseif how ~= 'neutral' then
    successes = 0
    if how == 'unreachable' then unreached = unreached + 1 end
    local is_pressed = how == 'many' or (how == 'unreachable' and unreached >= UNREACHABLE)
    -- One sent before the last increase says nothing of the pace since.
    if is_pressed and under >= raised then
      if how == 'unreachable' then unreached = 0 end
      raise()
    end
  end
elseif what == 'floor' then
  local before = delay()
  floor = given(13)
  if delay() > before then plan_anew() end
elseif what == 'pause' then
  local ends = now + given(13)
  if ends > paused or given(15) == paused then
    paused, cut = ends, given(14)
    plan_anew()
  end
elseif what == 'bucket' then
  local ends = now + given(13)
  redis.call('HSET', key, 'b:' .. ARGV[15], string.format('%.0f %d', ends, given(14)))
  buckets = math.max(buckets, ends)
end
return answer(0, 0, 0)
""",
)
