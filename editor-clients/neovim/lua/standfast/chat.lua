--- The chat: what was said above, the message box below. Draws views and sends messages; what they mean is the daemon's.

local client = require('standfast.client')
local config = require('standfast.config')
local diff = require('standfast.diff')
local highlights = require('standfast.highlights')
local message_box = require('standfast.message_box')
local permission = require('standfast.permission')
local render = require('standfast.render')
local scroll = require('standfast.scroll')
local sessions = require('standfast.sessions')
local text = require('standfast.text')

local M = {}

--- Streamed text is drawn at most this often.
local DRAW_MS = 30

---@class standfast.Chat
---@field sessionId string
---@field connection standfast.Connection
---@field bufnr integer
---@field box integer the message box's buffer
---@field scroll standfast.Scroll
---@field due boolean a redraw is on its way
---@field unsent? { text: string, id: string } a message that did not arrive
---@field recalled? table earlier messages, and where we are among them
---@field title string as the tab line shows it

---@type table<string, standfast.Chat>
local chats = {}

-- Names ---------------------------------------------------------------------------------------------------------------

local function title_of(view)
  local title = view and view.session and view.session.title or ''
  return text.line(title ~= '' and title or 'Untitled', 40)
end

--- The buffer that has exactly this name.
local function named(name)
  return vim.iter(vim.api.nvim_list_bufs()):find(function(bufnr)
    return vim.api.nvim_buf_get_name(bufnr) == name
  end)
end

--- A tab line and the list of buffers show the end of a name: the title, and two of one title apart.
local function name_buffer(bufnr, kind, chat)
  local before = vim.api.nvim_buf_get_name(bufnr)
  local name = ('standfast://%s/%s'):format(kind, (chat.title:gsub('/', '∕'))) -- a slash would part it
  if name == before then
    return
  end
  if named(name) then
    name = ('%s (%s)'):format(name, chat.sessionId)
  end
  vim.api.nvim_buf_set_name(bufnr, name)
  local left = before ~= '' and named(before) -- Neovim keeps the old name as a buffer of its own
  if left then
    vim.api.nvim_buf_delete(left, { force = true })
  end
end

local function name_buffers(chat, title)
  chat.title = title
  for kind, bufnr in pairs({ chat = chat.bufnr, message = chat.box }) do
    if vim.api.nvim_buf_is_valid(bufnr) then
      name_buffer(bufnr, kind, chat)
    end
  end
end

-- Drawing -------------------------------------------------------------------------------------------------------------

local function draw(chat)
  chat.due = false
  local view = sessions.view(chat.sessionId)
  if view and vim.api.nvim_buf_is_valid(chat.bufnr) then
    if chat.title ~= title_of(view) then
      name_buffers(chat, title_of(view))
    end
    scroll.show(chat.scroll, render.items(view))
    vim.cmd.redrawstatus({ bang = true })
  end
end

local function draw_soon(chat)
  if not chat.due then
    chat.due = true
    vim.defer_fn(function()
      draw(chat)
    end, DRAW_MS)
  end
end

sessions.on_change(function(session_id)
  if chats[session_id] then
    draw_soon(chats[session_id])
  end
end)

local function chat_of(bufnr)
  local session_id = vim.b[bufnr].standfast_session
  return session_id and chats[session_id]
end

local STATES = { starting = 'connecting', waiting = 'disconnected, connecting again', failed = 'disconnected' }

--- For the chat's 'winbar': title, mode, what is going on.
---@return string
function M.bar()
  local chat = chat_of(vim.api.nvim_get_current_buf())
  local view = chat and sessions.view(chat.sessionId)
  if not chat or not view then
    return ''
  end
  local session = view.session or {}
  local parts = { title_of(view), session.mode }
  if view.deleted then
    parts[#parts + 1] = 'deleted'
  elseif chat.connection.state ~= 'ready' then
    parts[#parts + 1] = STATES[chat.connection.state] or 'disconnected'
  elseif view.run then
    parts[#parts + 1] = view.run.status
  end
  if view.tokens.output > 0 then
    parts[#parts + 1] = ('%d → %d tokens'):format(view.tokens.input, view.tokens.output)
  end
  return '%#StandfastTitle# ' .. table.concat(parts, ' · '):gsub('%%', '%%%%') .. '%<'
end

-- Acting --------------------------------------------------------------------------------------------------------------

--- What a person most likely wants of the item under the cursor.
local function act(chat)
  local item = scroll.item_at(chat.scroll, vim.api.nvim_win_get_cursor(0)[1])
  if not item then
    return
  elseif item.kind == 'older' then
    sessions.older(chat.sessionId)
  elseif item.kind == 'queue' then
    require('standfast.queue').open(chat.connection, chat.sessionId)
  elseif item.kind == 'call' and item.status == 'asking' then
    permission.review(item.callId)
  elseif item.kind == 'call' then
    local conflict = vim.iter(item.conflicts):find(function(each)
      return not each.action
    end)
    diff.show(chat.connection, conflict and { conflictId = conflict.conflictId } or { callId = item.callId })
  end
end

local function move(chat, step)
  local line = scroll.neighbour(chat.scroll, vim.api.nvim_win_get_cursor(0)[1], step)
  vim.api.nvim_win_set_cursor(0, { line, 0 })
end

--- Open or close what is folded away: of the item under the cursor, or of all. `nil`: the other way round.
local function fold(chat, all, open)
  local item, first = scroll.item_at(chat.scroll, vim.api.nvim_win_get_cursor(0)[1])
  if not item then
    return
  elseif open == nil then
    open = not chat.scroll.open[item.id]
  end
  local ids = all and vim.tbl_map(function(block)
    return block.id
  end, chat.scroll.shown) or { item.id }
  scroll.set_open(chat.scroll, ids, open)
  draw(chat)
  if not all and not open then
    vim.api.nvim_win_set_cursor(0, { first, 0 })
  end
end

local function map_keys(chat)
  local function map(key, action, desc)
    vim.keymap.set('n', key, action, { buffer = chat.bufnr, nowait = true, desc = desc })
  end
  map('<CR>', function()
    act(chat)
  end, 'Show the difference, or answer the question')
  map(']]', function()
    move(chat, 1)
  end, 'Next message')
  map('[[', function()
    move(chat, -1)
  end, 'Previous message')
  for key, how in pairs({
    ['<Tab>'] = {},
    za = {},
    zo = { open = true },
    zc = { open = false },
    zR = { all = true, open = true },
    zM = { all = true, open = false },
  }) do
    map(key, function()
      fold(chat, how.all, how.open)
    end, 'Open or close thinking, arguments and output')
  end
  map('gp', function()
    sessions.older(chat.sessionId)
  end, 'Load older messages')
  map('<C-c>', function()
    require('standfast').stop()
  end, 'Stop the run')
  map('q', function()
    M.close(chat.sessionId)
  end, 'Close the chat')
  for _, key in ipairs({ 'i', 'a', 'o' }) do
    map(key, function()
      M.focus_box(chat)
    end, 'Write a message')
  end
end

-- Windows -------------------------------------------------------------------------------------------------------------

local function new_buffer(chat, filetype)
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.bo[bufnr].bufhidden = 'hide'
  vim.bo[bufnr].filetype = filetype
  vim.b[bufnr].standfast_session = chat.sessionId
  vim.b[bufnr].standfast_root = chat.connection.root
  return bufnr
end

local function new_history(chat)
  chat.bufnr = new_buffer(chat, 'standfast')
  vim.bo[chat.bufnr].undolevels = -1
  vim.bo[chat.bufnr].modifiable = false
  pcall(vim.treesitter.start, chat.bufnr, 'markdown')
  chat.scroll = scroll.new(chat.bufnr)
  map_keys(chat)
  vim.api.nvim_create_autocmd('WinScrolled', {
    buffer = chat.bufnr,
    callback = function()
      if vim.fn.line('w0') == 1 and vim.fn.line('.') == 1 then
        sessions.older(chat.sessionId)
      end
    end,
  })
end

local function gone(bufnr)
  return not (bufnr and vim.api.nvim_buf_is_valid(bufnr))
end

--- The chat of a session. A buffer that the person wiped out is made anew; the other one stays, with what is written there.
local function chat_with(connection, session_id)
  highlights.define()
  local chat = chats[session_id] or { sessionId = session_id, connection = connection, due = false }
  local no_history, no_box = gone(chat.bufnr), gone(chat.box)
  if no_history then
    new_history(chat)
  end
  if no_box then
    chat.box = new_buffer(chat, 'standfast-message')
    message_box.prepare(chat)
  end
  if no_history or no_box then
    name_buffers(chat, title_of(sessions.view(session_id)))
  end
  chats[session_id] = chat
  return chat
end

local function share(size, whole)
  return math.floor(size < 1 and whole * size or size)
end

local function open_window(bufnr)
  local set = config.get().chat
  if set.position == 'tab' then
    vim.cmd.tabnew()
    vim.api.nvim_win_set_buf(0, bufnr)
    return vim.api.nvim_get_current_win()
  elseif set.position == 'bottom' then
    return vim.api.nvim_open_win(bufnr, true, { split = 'below', win = -1, height = share(set.size, vim.o.lines) })
  end
  return vim.api.nvim_open_win(bufnr, true, { split = set.position, win = -1, width = share(set.size, vim.o.columns) })
end

local function dress(window)
  local options = {
    number = false, relativenumber = false, signcolumn = 'no', foldcolumn = '0', spell = false, list = false,
    wrap = true, linebreak = true, breakindent = true, conceallevel = 0, cursorline = false,
    foldmethod = 'manual', fillchars = 'eob: ',
    winbar = "%{%v:lua.require'standfast.chat'.bar()%}", statusline = ' Standfast',
  } -- stylua: ignore
  for name, value in pairs(options) do
    vim.wo[window][0][name] = value
  end
end

--- The window of a buffer in this tab, if there is one.
local function window_of(bufnr)
  return vim.iter(vim.api.nvim_tabpage_list_wins(0)):find(function(window)
    return vim.api.nvim_win_get_buf(window) == bufnr
  end)
end

--- Another session's chat in this tab: its windows are taken over, so that there is one chat a tab.
local function other_chat(chat)
  for _, other in pairs(chats) do
    if other ~= chat and window_of(other.bufnr) then
      return window_of(other.bufnr), window_of(other.box)
    end
  end
end

--- Put the cursor into the message box, ready to write.
---@param chat standfast.Chat
function M.focus_box(chat)
  local window = window_of(chat.box)
  if not window then
    local above = assert(window_of(chat.bufnr), 'the chat is not on the screen')
    local height = config.get().chat.input_height
    window = vim.api.nvim_open_win(chat.box, true, { split = 'below', win = above, height = height })
    message_box.dress(window)
  end
  vim.api.nvim_set_current_win(window)
  vim.cmd.startinsert({ bang = true })
end

local function show(chat)
  local window = window_of(chat.bufnr)
  if not window then
    local chat_window, box_window = other_chat(chat)
    if chat_window then
      vim.api.nvim_win_set_buf(chat_window, chat.bufnr)
      window = chat_window
    else
      window = open_window(chat.bufnr)
    end
    if box_window then
      vim.api.nvim_win_set_buf(box_window, chat.box)
    end
    dress(window)
  end
  draw(chat)
  vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(chat.bufnr), 0 })
  M.focus_box(chat)
end

--- Open the chat of a session.
---@param connection standfast.Connection
---@param session_id string
---@param callback? fun(err?: standfast.Error, chat?: standfast.Chat)
function M.open(connection, session_id, callback)
  callback = callback or function() end
  sessions.choose(connection.root, session_id)
  sessions.follow(connection, session_id, function(err)
    if err then
      client.show_error(err)
      callback(err)
      return
    end
    local chat = chat_with(connection, session_id)
    show(chat)
    callback(nil, chat)
  end)
end

--- Take a chat off the screen. The session goes on.
---@param session_id string
function M.close(session_id)
  local chat = chats[session_id]
  for _, bufnr in ipairs(chat and { chat.box, chat.bufnr } or {}) do
    for _, window in ipairs(vim.fn.win_findbuf(bufnr)) do
      if #vim.api.nvim_tabpage_list_wins(0) > 1 then
        vim.api.nvim_win_close(window, true)
      end
    end
  end
end

client.on('state', function(connection)
  for _, chat in pairs(chats) do
    if chat.connection == connection then
      draw_soon(chat)
    end
  end
end)

return M
