--- An item of a view as lines with highlights. Pure. Thinking, arguments and output are one line until they are opened.
--- Everything that is not ours goes through `text.visible`: no escape acts, no image loads, no link hides where it leads.

local text = require('standfast.text')

local M = {}

---@class standfast.Block
---@field lines string[]
---@field marks { row: integer, from: integer, to: integer, group: string }[] rows from 0 within the block, columns in bytes

local SIGNS = {
  you = '▌',
  agent = '▌',
  waiting = '○',
  asking = '?',
  running = '◐',
  uncertain = '!',
  ok = '✓',
  error = '✗',
  denied = '⊘',
  cancelled = '⊘',
  done = '✓',
  todo = '○',
  bar = '│',
  closed = '▸',
}
local ASCII = {
  you = '|',
  agent = '|',
  waiting = 'o',
  asking = '?',
  running = '~',
  uncertain = '!',
  ok = '+',
  error = 'x',
  denied = '-',
  cancelled = '-',
  done = '+',
  todo = 'o',
  bar = '|',
  closed = '+',
}
local GROUPS = {
  waiting = 'StandfastQuiet',
  asking = 'StandfastWarn',
  running = 'StandfastRunning',
  uncertain = 'StandfastWarn',
  ok = 'StandfastOk',
  error = 'StandfastError',
  denied = 'StandfastQuiet',
  cancelled = 'StandfastQuiet',
}
local LEVELS = { info = 'StandfastQuiet', warn = 'StandfastWarn', error = 'StandfastError' }

--- Builds a block line by line.
local function builder()
  local block = { lines = {}, marks = {} }
  local function put(line, group)
    block.lines[#block.lines + 1] = line
    if group and #line > 0 then
      block.marks[#block.marks + 1] = { row = #block.lines - 1, from = 0, to = #line, group = group }
    end
  end
  return block, put
end

--- Lines that are not shown until they are asked for. A single line hides nothing worth a key.
local function folded(put, lines, signs, open, what, group)
  if open or #lines < 2 then
    for _, line in ipairs(lines) do
      put(('  %s %s'):format(signs.bar, line), group)
    end
  else
    put(('  %s %s, %d lines (za opens)'):format(signs.closed, what, #lines), group)
  end
end

--- What a call acts on, in a few words.
---@param call standfast.CallItem
---@return string
function M.subject(call)
  local args = call.args or {}
  if type(args.patch) == 'string' then
    local paths = {}
    for path in args.patch:gmatch('%*%*%* %a+ File: ([^\n]+)') do
      paths[#paths + 1] = path
    end
    return text.line(table.concat(paths, ', '), 60)
  end
  for _, name in ipairs({ 'path', 'command', 'pattern', 'action', 'goal' }) do
    if type(args[name]) == 'string' then
      return text.line(args[name], 60)
    end
  end
  return ''
end

local function arguments(call)
  local args = call.args or {}
  local lines = {}
  local names = vim.tbl_keys(args)
  table.sort(names)
  for _, name in ipairs(names) do
    local value = args[name]
    local shown = text.lines(type(value) == 'string' and value or vim.json.encode(value))
    if #shown == 1 then
      lines[#lines + 1] = ('%s: %s'):format(text.line(name, 40), shown[1])
    else
      lines[#lines + 1] = text.line(name, 40) .. ':'
      vim.list_extend(lines, shown)
    end
  end
  return lines
end

local function user(item, signs)
  local block, put = builder()
  put(signs.you .. (item.steer and ' You, meanwhile' or ' You'), 'StandfastYou')
  for _, line in ipairs(text.lines(item.text)) do
    put(line)
  end
  put('')
  return block
end

local function assistant(item, signs, open)
  local block, put = builder()
  if item.done and item.stream.length == 0 and item.thinking == '' and not item.broken then
    return block
  end
  put(signs.agent .. ' Standfast', 'StandfastAgent')
  if item.thinking ~= '' then
    folded(put, text.lines(item.thinking), signs, open, 'thinking', 'StandfastThinking')
  end
  if item.stream.length > 0 then
    for _, line in ipairs(text.lines(item.stream.text)) do
      put(line)
    end
  elseif not item.done then
    put('…', 'StandfastQuiet')
  end
  if item.broken then
    put(text.line('The reply broke off: ' .. item.broken, 200), 'StandfastWarn')
  end
  put('')
  return block
end

local function outcome(call)
  if call.status == 'ok' or call.status == 'error' then
    local code = call.exitCode and call.exitCode ~= 0 and (' (exit %d)'):format(call.exitCode) or ''
    return (call.reason or (call.status == 'ok' and '' or 'failed')) .. code
  end
  return call.status
end

--- Lines that must not be folded away: what became of the call, what it waits for.
local function remarks(call, put)
  if call.status == 'asking' then
    put('  ? ' .. text.line(call.permission.summary, 200), 'StandfastWarn')
    for _, risk in ipairs(call.permission.risks or {}) do
      put('    ! ' .. text.line(risk, 200), 'StandfastError')
    end
    put('    <CR> shows the difference and asks for your answer', 'StandfastQuiet')
  elseif call.decision and call.decision ~= 'allow' then
    put('  your answer: ' .. call.decision, 'StandfastQuiet')
  end
  if call.verdict then
    local settled = call.resolution and (' · settled: ' .. call.resolution) or ''
    put(('  ! interrupted: %s%s'):format(call.verdict, settled), settled == '' and 'StandfastWarn' or 'StandfastQuiet')
    for _, target in ipairs(call.targets) do
      local what = target.uri and vim.fs.basename(vim.uri_to_fname(target.uri)) or target.command or ''
      put(('    %s: %s'):format(text.line(what, 80), target.verdict), 'StandfastQuiet')
    end
    if call.evidence and call.evidence ~= '' then
      put('    ' .. text.line(call.evidence, 200), 'StandfastQuiet')
    end
  end
  for _, conflict in ipairs(call.conflicts) do
    local settled = conflict.action and (' · settled: ' .. conflict.action) or ''
    local name = vim.fs.basename(vim.uri_to_fname(conflict.uri))
    local group = conflict.action and 'StandfastQuiet' or 'StandfastWarn'
    put(('  ! conflict in %s: %s%s'):format(text.line(name, 60), text.line(conflict.message, 160), settled), group)
  end
end

local function call(item, signs, open)
  local block, put = builder()
  local said = outcome(item)
  local head = ('%s %s  %s'):format(signs[item.status], text.line(item.tool, 30), M.subject(item))
  local line = vim.trim(head) .. (said ~= '' and ('  ' .. text.line(said, 40)) or '')
  put(line)
  local sign, tool = #signs[item.status], #text.line(item.tool, 30)
  vim.list_extend(block.marks, {
    { row = 0, from = 0, to = sign, group = GROUPS[item.status] },
    { row = 0, from = sign + 1, to = sign + 1 + tool, group = 'StandfastTool' },
    { row = 0, from = #vim.trim(head), to = #line, group = GROUPS[item.status] },
  })
  local body = arguments(item)
  local output = item.content or item.output.text
  if output ~= '' then
    body[#body + 1] = item.content and 'result:' or 'output:'
    vim.list_extend(body, text.lines(output))
  end
  folded(put, body, signs, open, output ~= '' and 'arguments and output' or 'arguments', 'StandfastOutput')
  remarks(item, put)
  put('')
  return block
end

local function noted(item)
  local block, put = builder()
  for _, line in ipairs(text.lines(item.text)) do
    put(line, LEVELS[item.level])
  end
  put('')
  return block
end

local function plan(item, signs)
  local block, put = builder()
  put('Plan' .. (item.goal ~= '' and (': ' .. text.line(item.goal, 120)) or ''), 'StandfastTool')
  for _, step in ipairs(item.steps) do
    local sign = ({ completed = signs.done, in_progress = signs.running })[step.status] or signs.todo
    put(('  %s %s'):format(sign, text.line(step.text, 160)), step.status == 'completed' and 'StandfastQuiet' or nil)
  end
  put('')
  return block
end

local function queue(item)
  local block, put = builder()
  local held = item.held and ' (held: nothing starts by itself; :Standfast queue)' or ''
  put(('Waiting: %d%s'):format(#item.messages, held), item.held and 'StandfastWarn' or 'StandfastQuiet')
  for at, message in ipairs(item.messages) do
    put(('  %d. %s'):format(at, text.line(message.text, 120)), 'StandfastQuiet')
  end
  put('')
  return block
end

local function older()
  local block, put = builder()
  put('… older messages: scroll up, or press gp', 'StandfastQuiet')
  put('')
  return block
end

local function empty(item)
  local block, put = builder()
  put('Say below what should be done.', 'StandfastQuiet')
  if item.mode == 'ask' then
    put('You see every change before it is made.', 'StandfastQuiet')
  end
  put('')
  return block
end

local shapes = {
  user = user,
  assistant = assistant,
  call = call,
  note = noted,
  plan = plan,
  queue = queue,
  older = older,
  empty = empty,
}

--- What a view shows, top to bottom: its items, and before and after them what belongs to the session as a whole.
---@param view standfast.View
---@return table[] items, each with `id`, `kind` and `rev`
function M.items(view)
  local items = {}
  if view.hasOlder then
    items[1] = { id = 'older', kind = 'older', rev = 1 }
  end
  vim.list_extend(items, view.items)
  if #items == 0 and view.session then
    items[1] = { id = 'empty', kind = 'empty', rev = view.session.mode, mode = view.session.mode }
  end
  if view.plan and #view.plan.steps > 0 then
    local plan_rev = vim.json.encode(view.plan)
    items[#items + 1] = { id = 'plan', kind = 'plan', rev = plan_rev, goal = view.plan.goal, steps = view.plan.steps }
  end
  if #view.queue > 0 then
    local queue_rev = vim.json.encode({ view.queue, view.queueHeld })
    items[#items + 1] =
      { id = 'queue', kind = 'queue', rev = queue_rev, messages = view.queue, held = view.queueHeld }
  end
  return items
end

---@param item table one of `items()`
---@param ascii? boolean
---@param open? boolean show what is folded away at first
---@return standfast.Block
function M.block(item, ascii, open)
  return shapes[item.kind](item, ascii and ASCII or SIGNS, open or false)
end

return M
