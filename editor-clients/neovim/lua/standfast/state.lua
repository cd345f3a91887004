--- One session as a person sees it: a fold of events and deltas. Pure: no window, no clock, no connection.
--- An event is taken once, in order (`seq`); streamed text is joined by offset. Each item carries `rev`, which rises when
--- it changes.

local folds = require('standfast.folds')
local join = require('standfast.join')

local M = {}

---@class standfast.Item
---@field id string unique in the view
---@field kind 'user'|'assistant'|'call'|'note'
---@field rev integer
---@field atMs integer
---@field runId? string

---@class standfast.UserItem: standfast.Item
---@field text string
---@field steer boolean put in while a run was going on

---@class standfast.AssistantItem: standfast.Item
---@field attempt integer
---@field stream standfast.Stream
---@field thinking string
---@field done boolean the reply came whole
---@field broken? string why it did not

---@class standfast.CallItem: standfast.Item
---@field callId string
---@field tool string
---@field args table
---@field status 'waiting'|'asking'|'running'|'uncertain'|'ok'|'error'|'denied'|'cancelled'
---@field output standfast.Stream
---@field content? string the result
---@field reason? string
---@field exitCode? integer
---@field recovered boolean
---@field files standfast.ChangedFile[]
---@field permission? standfast.Permission the question as it was asked
---@field decision? string
---@field verdict? string after a crash
---@field evidence? string
---@field targets standfast.Target[]
---@field resolution? string
---@field conflicts table[]

---@class standfast.NoteItem: standfast.Item
---@field text string
---@field level 'info'|'warn'|'error'

---@class standfast.View
---@field sessionId string
---@field session? standfast.Session
---@field items standfast.Item[]
---@field calls table<string, standfast.CallItem>
---@field conflicts table<string, table> open ones
---@field headSeq integer
---@field headHash? string
---@field firstSeq integer seq of the oldest event held; 0: none
---@field hasOlder boolean
---@field events table[] what was folded, ascending
---@field run? { runId: string, status: string, error?: standfast.RunError }
---@field queue standfast.QueueItem[]
---@field queueHeld boolean
---@field plan? table
---@field goal? standfast.Goal
---@field recovery? standfast.Recovery
---@field damage? standfast.Damage
---@field deleted? boolean the session is gone; what is held is all that is left
---@field tokens { input: integer, output: integer }
---@field rev integer rises with every change

---@param session_id string
---@return standfast.View
function M.new(session_id)
  return {
    sessionId = session_id,
    items = {},
    calls = {},
    conflicts = {},
    headSeq = 0,
    firstSeq = 0,
    hasOlder = false,
    events = {},
    queue = {},
    queueHeld = false,
    tokens = { input = 0, output = 0 },
    rev = 0,
  }
end

--- Take one stored event. `old`: it was here already; `gap`: something before it is missing, fetch it first.
---@param view standfast.View
---@param event table
---@return 'applied'|'old'|'gap'
function M.apply(view, event)
  if event.seq <= view.headSeq then
    return 'old'
  end
  if view.headSeq > 0 and event.seq > view.headSeq + 1 then
    return 'gap'
  end
  view.headSeq, view.headHash = event.seq, event.hash
  view.firstSeq = view.firstSeq == 0 and event.seq or view.firstSeq
  view.events[#view.events + 1] = event
  view.rev = view.rev + 1
  local fold = folds.folds[event.type]
  if fold then
    fold(view, event)
  end
  return 'applied'
end

--- Take streamed text that is no event yet.
---@param view standfast.View
---@param delta standfast.DeltaNotice
---@return boolean changed
function M.delta(view, delta)
  local item, stream
  if delta.callId then
    item = view.calls[delta.callId]
    stream = item and item.output
  else
    item = folds.open_reply(view, delta.runId)
    stream = item and item.attempt == delta.attempt and item.stream or nil
  end
  if not stream or not join.add(stream, delta.offset, delta.text) then
    return false
  end
  folds.touch(view, item)
  return true
end

--- Streamed text that is not stored is not sure any more (the connection was lost).
---@param view standfast.View
function M.rewind(view)
  for _, item in ipairs(view.items) do
    local stream = item.stream or item.output
    if stream and join.rewind(stream) then
      folds.touch(view, item)
    end
  end
end

--- Take the answer to `session/attach`. Returns the view to show from now on: another one where the history was replaced.
---@param view standfast.View
---@param result standfast.SessionAttachResult
---@return standfast.View
function M.attached(view, result)
  local first = result.events[1]
  if result.damage or (first and view.headSeq > 0 and first.seq > view.headSeq + 1) then
    view = M.new(view.sessionId)
  end
  M.rewind(view)
  if view.headSeq == 0 then
    view.hasOlder = first ~= nil and first.seq > 1
  end
  for _, event in ipairs(result.events) do
    M.apply(view, event)
  end
  view.session, view.recovery, view.damage = result.session, result.recovery, result.damage
  view.queue, view.queueHeld = result.queue or {}, result.queueHeld or false
  view.rev = view.rev + 1
  return view
end

--- Put an older page before what is held. Returns a new view: everything is folded again, so that calls find their results.
---@param view standfast.View
---@param events table[] ascending, ending right before the oldest event held
---@param has_more boolean
---@return standfast.View
function M.older(view, events, has_more)
  local whole = M.new(view.sessionId)
  for _, page in ipairs({ events, view.events }) do
    for _, event in ipairs(page) do
      M.apply(whole, event)
    end
  end
  for _, kept in ipairs({ 'session', 'queue', 'queueHeld', 'recovery', 'damage' }) do
    whole[kept] = view[kept]
  end
  whole.hasOlder = has_more
  for at, item in ipairs(view.items) do -- text that streams right now is not among the events
    local twin = whole.items[#whole.items - #view.items + at]
    local mine, theirs = item.stream or item.output, twin and (twin.stream or twin.output)
    if mine and theirs and twin.id == item.id then
      join.add(theirs, 0, mine.text)
    end
  end
  whole.rev = view.rev + 1
  return whole
end

return M
