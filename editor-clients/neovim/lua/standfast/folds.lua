--- What each event does to a view. Pure; called by `state.lua` only, in order and once for each event.
--- To show a new event: a function in `M.folds`, its look in `render.lua`.

local join = require('standfast.join')
local text = require('standfast.text')

local M = {}

--- Mark an item as changed.
---@param view standfast.View
---@param item standfast.Item
function M.touch(view, item)
  item.rev = item.rev + 1
  view.rev = view.rev + 1
end

local function add(view, event, kind, fields)
  local item = vim.tbl_extend('force', { id = kind .. event.seq, kind = kind, rev = 1, atMs = event.atMs }, fields)
  item.runId = event.runId
  view.items[#view.items + 1] = item
  view.rev = view.rev + 1
  return item
end

local function note(view, event, level, words)
  return add(view, event, 'note', { level = level, text = words })
end

--- The text of a message's content.
local function said(content)
  return vim
    .iter(content or {})
    :map(function(part)
      return part.text or ''
    end)
    :join('\n')
end

--- The reply of a run that is still being written.
---@param view standfast.View
---@param run_id string
---@return standfast.AssistantItem?
function M.open_reply(view, run_id)
  for at = #view.items, 1, -1 do
    local item = view.items[at]
    if item.kind == 'assistant' and item.runId == run_id then
      return not item.done and item or nil
    end
  end
end

--- A call by id. Its `tool_call` may lie on an older page: then a stand-in shows what is known.
local function call_of(view, event)
  local call = view.calls[event.callId]
  if not call then
    call = add(view, event, 'call', {
      callId = event.callId,
      tool = 'call',
      args = {},
      status = 'waiting',
      output = join.new(),
      recovered = false,
      files = {},
      targets = {},
      conflicts = {},
    })
    view.calls[event.callId] = call
  end
  return call
end

local function queued_at(view, message_id)
  for at, item in ipairs(view.queue) do
    if item.messageId == message_id then
      return at
    end
  end
end

local function number_queue(view)
  for at, item in ipairs(view.queue) do
    item.position = at - 1
  end
end

--- Event type → what it does. A type of a later release is kept and shows nothing.
---@type table<string, fun(view: standfast.View, event: table)>
M.folds = {}
local folds = M.folds

function folds.session_created(view, event)
  if event.origin then
    note(view, event, 'info', 'This history was brought in from elsewhere.')
  end
end

function folds.session_updated(view, event)
  if event.queueHeld ~= nil then
    view.queueHeld = event.queueHeld
  end
  if event.mode then
    note(view, event, 'info', 'Mode: ' .. event.mode)
  end
end

function folds.session_rebound(view, event)
  note(view, event, 'info', 'The session works in another folder now: ' .. event.workspaceUri)
end

function folds.message_queued(view, event)
  view.queue[#view.queue + 1] = {
    messageId = event.messageId,
    clientMessageId = event.clientMessageId,
    runId = event.runId,
    text = said(event.content),
  }
  number_queue(view)
end

function folds.message_edited(view, event)
  local at = queued_at(view, event.messageId)
  if not at then
    return
  end
  view.queue[at].text = event.text or view.queue[at].text
  if event.position then
    local item = table.remove(view.queue, at)
    table.insert(view.queue, math.min(event.position + 1, #view.queue + 1), item)
  end
  number_queue(view)
end

function folds.message_dequeued(view, event)
  local at = queued_at(view, event.messageId)
  if at then
    table.remove(view.queue, at)
    number_queue(view)
  end
end

function folds.user_message(view, event)
  add(view, event, 'user', { text = said(event.content), steer = event.steer or false })
end

function folds.run_started(view, event)
  view.run = { runId = event.runId, status = 'running' }
  if event.resumesRunId then
    note(view, event, 'info', 'Going on with the run that was interrupted.')
  end
end

local endings = {
  failed = { 'error', 'The run failed.' },
  cancelled = { 'info', 'Stopped.' },
  interrupted = { 'warn', 'The run was interrupted. Nothing goes on by itself.' },
}

function folds.run_finished(view, event)
  view.run = { runId = event.runId, status = event.status, error = event.error }
  local usage = event.usage or {}
  view.tokens.input = view.tokens.input + (usage.inputTokens or 0)
  view.tokens.output = view.tokens.output + (usage.outputTokens or 0)
  local reply = M.open_reply(view, event.runId)
  if reply then
    reply.done = true
    reply.broken = reply.stream.length > 0 and reply.broken or nil
    M.touch(view, reply)
  end
  local ending = endings[event.status]
  if ending then
    note(view, event, ending[1], ending[2] .. (event.error and (' ' .. event.error.message) or ''))
  end
end

function folds.model_request(view, event)
  add(view, event, 'assistant', {
    attempt = event.attempt,
    stream = join.new(),
    thinking = '',
    done = false,
  })
end

function folds.assistant_chunk(view, event)
  local reply = M.open_reply(view, event.runId)
  if reply and reply.attempt == event.attempt and join.add(reply.stream, event.offset, event.text, true) then
    M.touch(view, reply)
  end
end

function folds.assistant_message(view, event)
  local reply = M.open_reply(view, event.runId)
  if not reply then
    reply = add(view, event, 'assistant', { attempt = 0, thinking = '', done = false })
  end
  local texts, thoughts = {}, {}
  for _, block in ipairs(event.blocks or {}) do
    if block.type == 'text' then
      texts[#texts + 1] = block.text
    elseif block.type == 'thinking' then
      thoughts[#thoughts + 1] = block.thinking
    end
  end
  reply.stream = join.new()
  join.add(reply.stream, 0, table.concat(texts, '\n\n'), true)
  reply.thinking = table.concat(thoughts, '\n\n')
  reply.done = true
  M.touch(view, reply)
end

function folds.model_error(view, event)
  local reply = M.open_reply(view, event.runId)
  local again = event.retryAfterMs and (', trying again in %.0f s'):format(event.retryAfterMs / 1000) or ''
  local why = (event.message and event.message ~= '' and event.message or event.reason) .. again
  if reply then
    reply.done, reply.broken = true, why
    M.touch(view, reply)
  end
end

function folds.tool_call(view, event)
  local call = call_of(view, event)
  call.tool, call.args = event.tool, event.args or {}
  M.touch(view, call)
end

function folds.permission_requested(view, event)
  local call = call_of(view, event)
  call.status, call.permission = 'asking', event
  M.touch(view, call)
end

function folds.permission_resolved(view, event)
  local call = call_of(view, event)
  call.decision = event.decision
  if call.status == 'asking' then
    call.status = 'waiting'
  end
  M.touch(view, call)
end

function folds.tool_started(view, event)
  local call = call_of(view, event)
  call.status = 'running'
  M.touch(view, call)
end

function folds.tool_output(view, event)
  local call = call_of(view, event)
  if join.add(call.output, event.offset, event.text, true) then
    M.touch(view, call)
  end
end

function folds.tool_result(view, event)
  local call = call_of(view, event)
  call.status, call.content, call.reason = event.status, event.content, event.reason
  call.exitCode, call.recovered, call.files = event.exitCode, event.recovered or false, event.files or {}
  M.touch(view, call)
end

function folds.tool_recovery(view, event)
  local call = call_of(view, event)
  call.verdict, call.targets, call.evidence = event.status, event.targets or {}, event.evidence
  if call.status == 'running' then
    call.status = 'uncertain'
  end
  M.touch(view, call)
end

function folds.recovery_resolved(view, event)
  local call = call_of(view, event)
  call.resolution, call.verdict = event.action, event.verdict
  M.touch(view, call)
end

function folds.conflict_raised(view, event)
  local call = call_of(view, event)
  local conflict = { conflictId = event.conflictId, uri = event.uri, reason = event.reason, message = event.message }
  call.conflicts[#call.conflicts + 1] = conflict
  view.conflicts[event.conflictId] = conflict
  conflict.callId = event.callId
  M.touch(view, call)
end

function folds.conflict_resolved(view, event)
  local conflict = view.conflicts[event.conflictId]
  if conflict then
    conflict.action = event.action
    view.conflicts[event.conflictId] = nil
    M.touch(view, view.calls[conflict.callId])
  end
end

function folds.plan_updated(view, event)
  view.plan = { goal = event.goal, steps = event.steps }
end

function folds.goal_updated(view, event)
  local before = view.goal_said
  view.goal, view.goal_said = event.goal, text.goal(event.goal)
  if view.goal_said ~= before then -- what it used is told with each reply
    note(view, event, 'info', view.goal_said)
  end
end

function folds.summary_created(view, event)
  note(view, event, 'info', 'What came before was summarised for the model. The history itself is whole.')
end

return M
