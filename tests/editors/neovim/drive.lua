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

--- The diagnostics of a buffer as a person sees them.
function M.diagnostics(code)
  return M.wait(function()
    local found = vim.tbl_filter(function(each)
      return each.code == code
    end, vim.diagnostic.get(nil))
    return #found > 0
        and vim.tbl_map(function(each)
          local name = vim.fs.basename(vim.api.nvim_buf_get_name(each.bufnr))
          return { name, each.lnum, each.col, each.end_lnum, each.end_col, each.message, each.severity }
        end, found)
  end, 'the diagnostic ' .. code)
end

--- Wait until a diagnostic is gone.
function M.cleared(code)
  return M.wait(function()
    return not vim.iter(vim.diagnostic.get(nil)):any(function(each)
      return each.code == code
    end)
  end, 'the diagnostic ' .. code .. ' to go')
end

--- The titles of the code actions on a line of a buffer, asked as Neovim asks.
function M.actions(path, line)
  vim.cmd.edit(path)
  vim.api.nvim_win_set_cursor(0, { line, 0 })
  local client = M.wait(function()
    return vim.lsp.get_clients({ bufnr = 0, name = 'standfast' })[1]
  end, 'the server to attach')
  local params = vim.lsp.util.make_range_params(0, client.offset_encoding)
  params.context = { diagnostics = {} }
  local answer = assert(client:request_sync('textDocument/codeAction', params, WAIT_MS, 0))
  return vim.tbl_map(function(action)
    return action.title
  end, answer.result or {})
end

--- Choose a code action on a line as a person does (`gra`).
function M.act(path, line, title)
  vim.cmd.edit(path)
  vim.api.nvim_win_set_cursor(0, { line, 0 })
  M.answer(title)
  vim.lsp.buf.code_action()
  M.wait(function()
    return #M.answers == 0
  end, 'the list of code actions')
end

--- The lines of the chat.
function M.chat()
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.bo[bufnr].filetype == 'standfast' then
      return vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), bufnr
    end
  end
  return {}, nil
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
  local box = vim.fn.bufwinid(M.wait(function()
    return vim.iter(vim.api.nvim_list_bufs()):find(function(bufnr)
      return vim.bo[bufnr].filetype == 'standfast-message'
    end)
  end, 'the message box'))
  vim.api.nvim_set_current_win(box)
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
