--- What the tests need inside Neovim: run Lua, wait for a condition, choose from lists as a person would, see what was said.

local M = { asked = {}, said = {}, answers = {} }

local WAIT_MS = 20000

--- Run the Lua of a base64 text; returns JSON `{ok, value}`.
function M.run(encoded)
  local chunk, problem = loadstring(vim.base64.decode(encoded))
  if not chunk then
    return vim.json.encode({ ok = false, value = problem })
  end
  local ok, value = xpcall(chunk, debug.traceback)
  if value == nil then
    value = vim.NIL
  end
  local encodes, text = pcall(vim.json.encode, { ok = ok, value = value })
  return encodes and text or vim.json.encode({ ok = ok, value = tostring(value) })
end

--- Wait until `found()` is truthy and return it; fails loudly.
function M.wait(found, what)
  local value
  local done = vim.wait(WAIT_MS, function()
    value = found()
    return value and true or false
  end, 10)
  if not done then
    local seen = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
    error(('waited in vain for %s; said: %s; buffer:\n%s'):format(what, vim.inspect(M.said), seen))
  end
  return value
end

--- Answer the next lists with the first item whose label contains one of these texts, in turn.
function M.answer(...)
  vim.list_extend(M.answers, { ... })
end

--- Replace what a person would look at: lists and messages.
function M.take_over()
  vim.ui.select = function(items, options, on_choice)
    local labels = vim.tbl_map(options.format_item or tostring, items)
    table.insert(M.asked, { prompt = options.prompt, labels = labels })
    local wanted = table.remove(M.answers, 1)
    for at, label in ipairs(labels) do
      if wanted and label:find(wanted, 1, true) then
        on_choice(items[at], at)
        return
      end
    end
    on_choice(nil, nil)
  end
  vim.notify = function(message)
    table.insert(M.said, message)
  end
end

--- Wait for something that was said.
function M.heard(text)
  return M.wait(function()
    return vim.iter(M.said):find(function(message)
      return message:find(text, 1, true)
    end)
  end, 'the message ' .. text)
end

local function found(code, name)
  local shown = {}
  for _, each in ipairs(vim.diagnostic.get(nil)) do
    local file = vim.fs.basename(vim.api.nvim_buf_get_name(each.bufnr))
    if (not code or each.code == code) and (not name or file == name) then
      shown[#shown + 1] = { file, each.lnum, each.col, each.end_lnum, each.end_col, each.message, each.severity }
    end
  end
  return shown
end

--- Wait for diagnostics with a code, of a file or of all; as Neovim shows them.
function M.diagnostics(code, name)
  return M.wait(function()
    local shown = found(code, name)
    return #shown > 0 and shown
  end, 'the diagnostic ' .. code)
end

--- Wait until a file has no diagnostic left.
function M.cleared(name)
  return M.wait(function()
    return #found(nil, name) == 0
  end, 'the diagnostics of ' .. name .. ' to go')
end

--- Open a file at a line; the server is attached and has said what it has to say.
local function visit(path, line)
  vim.cmd.edit(path)
  vim.api.nvim_win_set_cursor(0, { line, 0 })
  M.wait(function()
    return #vim.diagnostic.get(0) > 0
  end, 'diagnostics in ' .. path)
  return M.wait(function()
    return vim.lsp.get_clients({ bufnr = 0, name = 'standfast' })[1]
  end, 'the server to attach')
end

--- The titles of the code actions on a line of a buffer, asked as Neovim asks.
function M.actions(path, line)
  local client = visit(path, line)
  local params = vim.lsp.util.make_range_params(0, client.offset_encoding)
  params.context = { diagnostics = {} }
  local answer = assert(client:request_sync('textDocument/codeAction', params, WAIT_MS, 0))
  return vim.tbl_map(function(action)
    return action.title
  end, answer.result or {})
end

--- Choose a code action on a line as a person does (`gra`).
function M.act(path, line, title)
  visit(path, line)
  M.answer(title)
  vim.lsp.buf.code_action()
  M.wait(function()
    return #M.answers == 0
  end, 'the list of code actions')
end

--- The buffer with this filetype that is on the screen.
local function on_screen(filetype)
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    local bufnr = vim.api.nvim_win_get_buf(window)
    if vim.bo[bufnr].filetype == filetype then
      return bufnr
    end
  end
end

--- The lines of the chat, and its buffer.
function M.chat()
  local bufnr = on_screen('standfast')
  return bufnr and vim.api.nvim_buf_get_lines(bufnr, 0, -1, false) or {}, bufnr
end

--- The buffer of the message box.
function M.box()
  return on_screen('standfast-message')
end

--- Back to one window with a.py, nothing asked, nothing said.
function M.tidy()
  vim.cmd.stopinsert()
  vim.cmd('silent! tabonly | silent! only')
  vim.cmd('silent! edit! a.py')
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if bufnr ~= vim.api.nvim_get_current_buf() then
      vim.api.nvim_buf_delete(bufnr, { force = true })
    end
  end
  M.asked, M.said, M.answers = {}, {}, {}
  M.take_over()
end

--- `:Standfast chat`, and wait until it is there.
function M.open_chat(options)
  local before = M.view()
  vim.cmd.Standfast({ args = { 'chat' }, bang = options and options.new or false })
  M.wait(function()
    local view = M.view()
    return view and view.headSeq > 0 and not (before and before.sessionId == view.sessionId)
  end, 'the chat')
end

--- `:Standfast mode …`, and wait until it holds.
function M.mode(mode)
  vim.cmd.Standfast({ args = { 'mode', mode } })
  M.shown('Mode: ' .. mode)
end

--- Wait for a line of the chat that contains a text.
function M.shown(text)
  return M.wait(function()
    return vim.iter(M.chat()):find(function(line)
      return line:find(text, 1, true)
    end)
  end, 'the chat to show ' .. text)
end

--- Write a message into the box and send it, as typed.
function M.send(message)
  local box = M.wait(function()
    return on_screen('standfast-message')
  end, 'the message box')
  vim.api.nvim_set_current_win(vim.fn.bufwinid(box))
  vim.cmd.stopinsert()
  vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(message, '\n'))
  vim.api.nvim_feedkeys(vim.keycode('<C-s>'), 'xt', false)
end

--- The view of the session that is open.
function M.view()
  local _, bufnr = M.chat()
  return bufnr and require('standfast.sessions').view(vim.b[bufnr].standfast_session)
end

return M
