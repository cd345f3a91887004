--- Questions of the daemon: may this be done? The difference is shown before the answer, and the answer is for that content only.

local client = require('standfast.client')
local config = require('standfast.config')
local diff = require('standfast.diff')
local say = require('standfast.say')
local text = require('standfast.text')

local M = {}

---@class standfast.Question
---@field connection standfast.Connection
---@field permission standfast.Permission as the daemon asked
---@field settled boolean
---@field settle fun(answer?: table, err?: lsp.ResponseError)
---@field close? fun() takes what shows it off the screen

---@type table<string, standfast.Question>
local open = {}

--- The question that is on the screen: one at a time.
---@type standfast.Question?
local shown

--- Open questions, the oldest call first.
---@return standfast.Question[]
function M.open()
  local questions = vim.tbl_values(open)
  table.sort(questions, function(one, other)
    return one.permission.callId < other.permission.callId
  end)
  return questions
end

local function done(question, answer, err)
  if question.settled then
    return
  end
  question.settled = true
  local call_id = question.permission.callId
  if open[call_id] == question then
    open[call_id] = nil
  end
  if shown == question then
    shown = nil
  end
  if question.close then
    question.close()
  end
  question.settle(answer, err)
  vim.cmd.redrawstatus({ bang = true })
end

--- Whether the person is in a chat and not writing: then a question may open by itself. An empty message box is no writing.
local function may_open()
  local when = config.get().permission.open
  local mode = vim.api.nvim_get_mode().mode
  local waiting = mode == 'i' and vim.bo.filetype == 'standfast-message' and vim.fn.wordcount().bytes <= 1
  if when == 'never' or not (mode == 'n' or waiting) then
    return false
  end
  return when == 'always' or vim.b.standfast_session ~= nil
end

--- Handle `standfast/permission/request`; runs in a coroutine and returns when there is an answer.
---@param connection standfast.Connection
---@param permission standfast.Permission
---@return standfast.PermissionAnswer? answer
---@return lsp.ResponseError? err answered elsewhere, or the connection was lost: no answer
function M.ask(connection, permission)
  local thread = coroutine.running()
  local question = { connection = connection, permission = permission, settled = false }
  function question.settle(answer, err)
    vim.schedule(function()
      coroutine.resume(thread, answer, err)
    end)
  end
  local before = open[permission.callId]
  open[permission.callId] = question
  if before then -- asked again: what it showed holds no more
    done(before, nil, vim.lsp.rpc_response_error(vim.lsp.protocol.ErrorCodes.RequestCancelled, 'asked anew'))
  end
  vim.cmd.redrawstatus({ bang = true })
  vim.schedule(function()
    if may_open() then
      vim.cmd.stopinsert()
      M.review(permission.callId)
    else
      local what = text.line(permission.summary, 120)
      say.warn(('your answer is needed (:Standfast review): %s'):format(what))
    end
  end)
  return coroutine.yield()
end

local CHOICES = {
  { label = 'Allow', decision = 'allow' },
  { label = 'Allow for this session', decision = 'allowSession' },
  { label = 'Deny', decision = 'deny' },
  { label = 'Decide later' },
}

--- Keys that were typed before the question was there are no answer to it.
local function forget_typed_keys()
  while vim.fn.getchar(0) ~= 0 do
  end
end

local function prompt_of(permission)
  local lines = { text.line(permission.summary, 300) }
  for _, risk in ipairs(permission.risks or {}) do
    lines[#lines + 1] = '! ' .. text.line(risk, 200)
  end
  if #(permission.files or {}) == 0 and permission.sandbox and permission.sandbox ~= '' then -- files are not run
    lines[#lines + 1] = 'Sandbox: ' .. text.line(permission.sandbox, 80)
  end
  return table.concat(lines, '\n')
end

local function choose(question, choices)
  vim.cmd.redraw()
  forget_typed_keys()
  vim.ui.select(choices, {
    prompt = prompt_of(question.permission),
    kind = 'standfast.permission',
    format_item = function(choice)
      return choice.label
    end,
  }, function(choice)
    if question.settled then
      say.info('that was answered elsewhere meanwhile.')
    elseif choice and choice.go then
      choice.go()
    elseif choice and choice.decision then
      done(question, { decision = choice.decision, digest = question.permission.digest })
    else
      shown = nil
      if question.close then
        question.close()
      end
    end
  end)
end

local function close_tab(tab)
  return function()
    if vim.api.nvim_tabpage_is_valid(tab) and #vim.api.nvim_list_tabpages() > 1 then
      pcall(vim.cmd.tabclose, vim.api.nvim_tabpage_get_number(tab))
    end
  end
end

--- Show file number `at` and ask; with several files one can go through them before the answer.
local function ask_with(question, files, at)
  if question.close then
    question.close()
  end
  local choices = vim.deepcopy(CHOICES)
  if files[at] then
    question.close = close_tab(diff.two(files[at], #files > 1 and ('(%d of %d)'):format(at, #files) or nil))
  end
  if #files > 1 then
    local next = at % #files + 1
    table.insert(choices, 1, {
      label = ('Show file %d of %d'):format(next, #files),
      go = function()
        ask_with(question, files, next)
      end,
    })
  end
  choose(question, choices)
end

--- Show what a question is about, then ask.
---@param call_id string
function M.review(call_id)
  local question = open[call_id]
  if not question then
    say.info('nothing waits for your answer there.')
    return
  end
  if shown and shown ~= question and not shown.settled then
    return
  end
  shown = question
  if #(question.permission.files or {}) == 0 then
    ask_with(question, {}, 1)
    return
  end
  client.request(question.connection, 'diff/get', { callId = call_id }, function(err, result)
    if question.settled then
      return
    elseif err then
      shown = nil
      client.show_error(err)
    else
      ask_with(question, result.files, 1)
    end
  end)
end

client.on('permission/resolved', function(_, params)
  local question = open[params.callId]
  if question then
    done(question, nil, vim.lsp.rpc_response_error(vim.lsp.protocol.ErrorCodes.RequestCancelled, 'settled already'))
  end
end)

client.on('lost', function(connection)
  for _, question in ipairs(vim.tbl_values(open)) do
    if question.connection == connection then
      done(question, nil, vim.lsp.rpc_response_error(vim.lsp.protocol.ErrorCodes.RequestCancelled, 'lost'))
    end
  end
end)

return M
