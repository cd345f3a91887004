--- Differences in Neovim's own diff mode: two sides for a change, three for a conflict. Nothing here writes a file.

local client = require('standfast.client')
local say = require('standfast.say')
local text = require('standfast.text')

local M = {}

local marks = vim.api.nvim_create_namespace('standfast_hidden')

--- Show what a file hides (bidi, zero width, control characters) without changing its text.
local function mark_hidden(bufnr)
  for row, line in ipairs(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)) do
    if text.visible(line) ~= line then
      local column = 0
      for character in line:gmatch('[%z\1-\127\194-\244][\128-\191]*') do
        local shown = text.visible(character)
        if shown ~= character then
          vim.api.nvim_buf_set_extmark(bufnr, marks, row - 1, column, {
            virt_text = { { shown, 'StandfastHidden' } },
            virt_text_pos = 'inline',
          })
        end
        column = column + #character
      end
    end
  end
end

--- A read-only buffer with one side of a file.
local function side(uri, label, content)
  local name = ('standfast-diff://%s/%s'):format(label, vim.fn.fnamemodify(vim.uri_to_fname(uri), ':~:.'))
  local existing = vim.fn.bufnr('^' .. vim.fn.escape(name, '*?[]{}\\,') .. '$')
  local bufnr = existing ~= -1 and existing or vim.api.nvim_create_buf(false, true)
  if existing == -1 then
    vim.api.nvim_buf_set_name(bufnr, name)
  end
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.bo[bufnr].modifiable = true
  local lines = vim.split(content or '', '\n', { plain = true })
  if lines[#lines] == '' then
    table.remove(lines)
  end
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].syntax = vim.filetype.match({ filename = vim.uri_to_fname(uri) }) or ''
  mark_hidden(bufnr)
  return bufnr
end

local function head(window, label, uri, note)
  local name = text.line(vim.fn.fnamemodify(vim.uri_to_fname(uri), ':~:.'), 60)
  local bar = (' %s · %s'):format(label, name):gsub('%%', '%%%%')
  vim.wo[window][0].winbar = '%#StandfastTitle#' .. bar .. '%<' .. (note and ('  ' .. note) or '')
end

--- Buffers side by side in a tab of their own, in diff mode. `q` closes it.
---@param panes { bufnr: integer, label: string, note?: string }[]
---@param uri string
---@return integer tabpage
local function open(panes, uri)
  vim.cmd.tabnew()
  local scratch = vim.api.nvim_get_current_buf()
  for at, pane in ipairs(panes) do
    if at > 1 then
      vim.cmd.vsplit({ mods = { split = 'belowright' } })
    end
    vim.api.nvim_win_set_buf(0, pane.bufnr)
    vim.cmd.diffthis()
    head(vim.api.nvim_get_current_win(), pane.label, uri, pane.note)
    if vim.bo[pane.bufnr].buftype == 'nofile' then
      vim.keymap.set('n', 'q', '<Cmd>tabclose<CR>', { buffer = pane.bufnr, desc = 'Close the difference' })
    end
  end
  if scratch ~= panes[1].bufnr and vim.api.nvim_buf_is_valid(scratch) then
    pcall(vim.api.nvim_buf_delete, scratch, {})
  end
  vim.cmd.wincmd('=')
  pcall(vim.cmd.normal, { args = { 'gg]c' }, bang = true })
  return vim.api.nvim_get_current_tabpage()
end

--- A change, before and after.
---@param file standfast.FileDiff
---@param note? string shown beside the name of the right side
---@return integer tabpage
function M.two(file, note)
  local before, after = file.before, file.after
  return open({
    { bufnr = side(file.uri, 'before', before), label = before and 'before' or 'before (no such file)' },
    { bufnr = side(file.uri, 'after', after), label = after and 'after' or 'after (deleted)', note = note },
  }, file.uri)
end

--- A conflict: what the agent saw, the file as it is (the real one, to be edited), what the agent wanted. A side that the
--- daemon does not know, such as the result of a patch that fits nowhere, is left out.
---@param conflict standfast.ConflictGetResult
---@return integer tabpage
function M.three(conflict)
  local bufnr = vim.uri_to_bufnr(conflict.uri)
  vim.fn.bufload(bufnr)
  vim.bo[bufnr].buflisted = true
  local panes = { { bufnr = bufnr, label = 'your file' } }
  if conflict.base then
    table.insert(panes, 1, { bufnr = side(conflict.uri, 'seen', conflict.base), label = 'what the agent saw' })
  end
  if conflict.proposed then
    table.insert(panes, { bufnr = side(conflict.uri, 'wanted', conflict.proposed), label = 'what the agent wanted' })
  end
  local tab = open(panes, conflict.uri)
  if #panes > 1 then
    say.info('your file can be edited here; :diffget takes a change over.')
  else
    say.info(text.line(conflict.message, 200))
  end
  return tab
end

local function pick(files, callback)
  if #files == 1 then
    callback(files[1])
    return
  end
  vim.ui.select(files, {
    prompt = 'Which file?',
    kind = 'standfast.file',
    format_item = function(file)
      return text.line(vim.fn.fnamemodify(vim.uri_to_fname(file.uri), ':~:.'))
    end,
  }, function(file)
    if file then
      callback(file)
    end
  end)
end

--- Show the difference of a call, a run or a conflict (the params of `diff/get`).
---@param connection standfast.Connection
---@param subject standfast.DiffGetParams
function M.show(connection, subject)
  local method = subject.conflictId and 'conflict/get' or 'diff/get'
  local params = subject.conflictId and { conflictId = subject.conflictId } or subject
  client.request(connection, method, params, function(err, result)
    if err then
      client.show_error(err)
    elseif subject.conflictId then
      M.three(result)
    elseif #result.files == 0 then
      say.info('no file was changed there.')
    else
      pick(result.files, M.two)
    end
  end)
end

return M
