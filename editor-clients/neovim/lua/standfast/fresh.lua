--- Keeps buffers as fresh as the files: after a write of the agent Neovim looks at the disk at once, not at the next focus.

local sessions = require('standfast.sessions')

local M = {}

local WRITES = { tool_result = true, recovery_resolved = true, conflict_resolved = true, tool_recovery = true }

--- Let Neovim look whether the file of a buffer has changed. A buffer with unsaved text is left alone.
---@param bufnr integer
local function look(bufnr)
  if vim.api.nvim_buf_is_loaded(bufnr) and not vim.bo[bufnr].modified and vim.bo[bufnr].buftype == '' then
    vim.cmd.checktime({ args = { tostring(bufnr) }, mods = { silent = true, emsg_silent = true } })
  end
end

--- Look at all buffers below a folder.
---@param root string
function M.all(root)
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.startswith(vim.api.nvim_buf_get_name(bufnr), root .. '/') then
      look(bufnr)
    end
  end
end

sessions.on_change(function(session_id, event)
  local connection = sessions.connection(session_id)
  if connection and (not event or WRITES[event.type] or event.type == 'run_finished') then
    M.all(connection.root)
  end
end)

return M
