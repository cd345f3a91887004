--- What needs a person: open questions, what the daemon points at in this folder, and what the last run changed.

local diff = require('standfast.diff')
local permission = require('standfast.permission')
local say = require('standfast.say')
local sessions = require('standfast.sessions')
local text = require('standfast.text')

local M = {}

--- Go to the place of an attention item; its code actions are there (`gra`).
local function go_to(item)
  local bufnr = vim.uri_to_bufnr(item.uri)
  vim.fn.bufload(bufnr)
  vim.bo[bufnr].buflisted = true
  if vim.b.standfast_session then -- leave the chat on the screen
    vim.cmd.wincmd('p')
    if vim.b.standfast_session then
      vim.cmd.split({ mods = { split = 'topleft', vertical = true } })
    end
  end
  vim.api.nvim_win_set_buf(0, bufnr)
  local last = vim.api.nvim_buf_line_count(bufnr)
  vim.api.nvim_win_set_cursor(0, { math.min(item.line, last), 0 })
  say.info('code actions (gra) settle this: ' .. text.line(item.message, 200))
end

local function question_entry(question)
  return {
    label = 'Answer: ' .. text.line(question.permission.summary, 90),
    go = function()
      permission.review(question.permission.callId)
    end,
  }
end

local function item_entry(item)
  local name = vim.fn.fnamemodify(vim.uri_to_fname(item.uri), ':~:.')
  return {
    label = ('%s: %s:%d  %s'):format(item.code, text.line(name, 50), item.line, text.line(item.message, 90)),
    go = function()
      go_to(item)
    end,
  }
end

--- What can be reviewed in a folder, the most urgent first.
---@param connection standfast.Connection
---@return { label: string, go: fun() }[]
function M.entries(connection)
  local entries = {}
  for _, question in ipairs(permission.open()) do
    entries[#entries + 1] = question_entry(question)
  end
  for _, item in ipairs(connection.items) do
    if item.code ~= 'permission-needed' then
      entries[#entries + 1] = item_entry(item)
    end
  end
  local session = sessions.known(connection.root)[sessions.current(connection.root) or '']
  if session and session.lastRun then
    entries[#entries + 1] = {
      label = 'See what the last run changed',
      go = function()
        diff.show(connection, { runId = session.lastRun.runId })
      end,
    }
  end
  return entries
end

--- Let the person choose what to look at; a single entry opens at once.
---@param connection standfast.Connection
function M.open(connection)
  local entries = M.entries(connection)
  if #entries == 0 then
    say.info('nothing needs you here.')
  elseif #entries == 1 then
    entries[1].go()
  else
    vim.ui.select(entries, {
      prompt = 'Review',
      kind = 'standfast.review',
      format_item = function(entry)
        return entry.label
      end,
    }, function(entry)
      if entry then
        entry.go()
      end
    end)
  end
end

return M
