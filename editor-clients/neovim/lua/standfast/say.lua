--- A word to the person that never stands in the way: it fits the message line, so Neovim asks for no key.

local M = {}

--- Whether `vim.notify` is Neovim's own, which prints; plugins show whole messages in windows of their own.
local function prints()
  return debug.getinfo(vim.notify, 'S').source:find('vim/_', 1, true) ~= nil
end

local GROUPS = { [vim.log.levels.WARN] = 'WarningMsg', [vim.log.levels.ERROR] = 'ErrorMsg' }

--- A message too long for the line is cut there; the whole of it is in `:messages`.
local function print_cut(message, level)
  local room = vim.v.echospace
  local shown = message
  while vim.fn.strdisplaywidth(shown) > room - 1 do
    shown = vim.fn.strcharpart(shown, 0, vim.fn.strchars(shown) - 1)
  end
  vim.cmd(('silent echomsg %s'):format(vim.fn.string(message)))
  vim.cmd.redraw()
  vim.api.nvim_echo({ { shown .. '…', GROUPS[level] or '' } }, false, {})
end

local function tell(message, level)
  message = 'Standfast: ' .. message:gsub('`([^`]+)`', '“%1”') -- plain text is all that a message can be
  if prints() and vim.fn.strdisplaywidth(message) > vim.v.echospace then
    print_cut(message, level)
  else
    vim.notify(message, level, { title = 'Standfast' })
  end
end

--- While one writes, the message line belongs to the mode: what matters is said again when the writing ends.
local function tell_again_after_writing(message, level)
  if prints() and vim.api.nvim_get_mode().mode ~= 'n' then
    vim.api.nvim_create_autocmd('ModeChanged', {
      pattern = '*:n',
      once = true,
      callback = vim.schedule_wrap(function()
        tell(message, level)
      end),
    })
  end
end

---@param message string one line, with what is not ours made visible
function M.info(message)
  tell(message, vim.log.levels.INFO)
end

---@param message string
function M.warn(message)
  tell(message, vim.log.levels.WARN)
  tell_again_after_writing(message, vim.log.levels.WARN)
end

---@param message string
function M.error(message)
  tell(message, vim.log.levels.ERROR)
  tell_again_after_writing(message, vim.log.levels.ERROR)
end

return M
