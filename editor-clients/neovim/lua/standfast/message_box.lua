--- The message box: a small buffer of its own below the chat. Sends, remembers, completes file names after `@`.

local client = require('standfast.client')
local sessions = require('standfast.sessions')

local M = {}

local COMPLETE_MS = 1000

local function lines_of(chat)
  return table.concat(vim.api.nvim_buf_get_lines(chat.box, 0, -1, false), '\n')
end

local function fill(chat, message)
  vim.api.nvim_buf_set_lines(chat.box, 0, -1, false, vim.split(message, '\n', { plain = true }))
  for _, window in ipairs(vim.fn.win_findbuf(chat.box)) do
    local last = vim.api.nvim_buf_line_count(chat.box)
    vim.api.nvim_win_set_cursor(window, { last, #vim.api.nvim_buf_get_lines(chat.box, last - 1, last, false)[1] })
  end
end

--- A message that did not arrive comes back into an empty box; sent again it has the same id, so it cannot count twice.
local function give_back(chat, message, message_id)
  if lines_of(chat) == '' then
    fill(chat, message)
  end
  chat.unsent = { text = message, id = message_id }
end

--- Send what is in the box.
---@param chat standfast.Chat
function M.send(chat)
  local message = vim.trim(lines_of(chat))
  if message == '' then
    return
  end
  local unsent = chat.unsent
  local message_id = unsent and unsent.text == message and unsent.id or sessions.new_message_id()
  chat.unsent, chat.recalled = nil, nil
  fill(chat, '')
  sessions.send(chat.sessionId, message, message_id, function(err)
    if err then
      give_back(chat, message, message_id)
      require('standfast.ways_out').offer(chat.connection, chat.sessionId, err, function()
        M.send(chat)
      end)
    end
  end)
end

-- Earlier messages ----------------------------------------------------------------------------------------------------

local function show_recalled(chat, step)
  local recalled = chat.recalled
  recalled.at = math.max(0, math.min(#recalled.messages, recalled.at + step))
  fill(chat, recalled.at == 0 and recalled.draft or recalled.messages[recalled.at].text)
end

--- Go through what was written before, over all sessions of the folder; the draft is kept.
---@param chat standfast.Chat
---@param step 1|-1 1: further back
function M.recall(chat, step)
  if chat.recalled then
    local recalled = chat.recalled
    local shown = recalled.at > 0 and recalled.messages[recalled.at].text
    if shown ~= lines_of(chat) then -- it was changed: that is the draft now
      recalled.at, recalled.draft = 0, lines_of(chat)
    end
    show_recalled(chat, step)
    return
  end
  local params = { workspaceUri = vim.uri_from_fname(chat.connection.root), limit = 100 }
  client.request(chat.connection, 'message/history', params, function(err, result)
    if err then
      client.show_error(err)
    elseif not chat.recalled then
      chat.recalled = { messages = result.messages, at = 0, draft = lines_of(chat) }
      show_recalled(chat, step)
    end
  end)
end

-- Files ---------------------------------------------------------------------------------------------------------------

--- For 'completefunc': files of the workspace after an `@`.
---@param find_start integer
---@param base string
---@return integer|string[]
function M.complete(find_start, base)
  if find_start == 1 then
    local before = vim.api.nvim_get_current_line():sub(1, vim.api.nvim_win_get_cursor(0)[2])
    local at = before:find('@[^%s@]*$')
    return at or -3
  end
  local connection = client.find(vim.b.standfast_root)
  if not connection or connection.state ~= 'ready' then
    return {}
  end
  local params = { workspaceUri = vim.uri_from_fname(connection.root), query = base, limit = 50 }
  local answer = connection.client:request_sync('standfast/workspace/files', params, COMPLETE_MS)
  local files = answer and answer.result and answer.result.files or {}
  return vim.tbl_map(function(file)
    return file.path
  end, files)
end

-- The buffer ----------------------------------------------------------------------------------------------------------

--- Where the cursor cannot go further, the arrow keys go through earlier messages.
local function arrow(chat, key, step)
  return function()
    local line = vim.api.nvim_win_get_cursor(0)[1]
    local edge = step == 1 and 1 or vim.api.nvim_buf_line_count(chat.box)
    if vim.fn.pumvisible() == 0 and line == edge then
      M.recall(chat, step)
    else
      vim.api.nvim_feedkeys(vim.keycode(key), 'n', false)
    end
  end
end

--- Keys and options of the box of a new chat.
---@param chat standfast.Chat
function M.prepare(chat)
  local function map(modes, key, action, desc)
    vim.keymap.set(modes, key, action, { buffer = chat.box, nowait = true, desc = desc })
  end
  local function send()
    M.send(chat)
  end
  map({ 'n', 'i' }, '<C-s>', send, 'Send the message')
  map('n', '<CR>', send, 'Send the message')
  map('n', '<C-c>', function()
    require('standfast').stop()
  end, 'Stop the run')
  map('n', 'q', function()
    require('standfast.chat').close(chat.sessionId)
  end, 'Close the chat')
  map({ 'n', 'i' }, '<Up>', arrow(chat, '<Up>', 1), 'Earlier message')
  map({ 'n', 'i' }, '<Down>', arrow(chat, '<Down>', -1), 'Later message')
  map('i', '@', '@<C-x><C-u>', 'Name a file')
  vim.bo[chat.box].completefunc = "v:lua.require'standfast.message_box'.complete"
  vim.bo[chat.box].completeopt = 'menuone,noinsert'
  vim.bo[chat.box].textwidth = 0
end

--- Options of the box's window.
---@param window integer
function M.dress(window)
  local options = {
    number = false,
    relativenumber = false,
    signcolumn = 'no',
    wrap = true,
    linebreak = true,
    winfixheight = true,
    statusline = ' ',
    winbar = '%#StandfastQuiet# Message · <C-s> sends · @ file%< · <Up> earlier',
  }
  for name, value in pairs(options) do
    vim.wo[window][0][name] = value
  end
end

return M
