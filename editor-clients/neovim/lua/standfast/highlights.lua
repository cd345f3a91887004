--- The colours, all linked to groups that every colour scheme has: light and dark follow by themselves.

local M = {}

local links = {
  StandfastYou = 'Title',
  StandfastAgent = 'Function',
  StandfastThinking = 'Comment',
  StandfastOutput = 'Comment',
  StandfastTool = 'Identifier',
  StandfastQuiet = 'Comment',
  StandfastOk = 'DiagnosticOk',
  StandfastWarn = 'DiagnosticWarn',
  StandfastError = 'DiagnosticError',
  StandfastRunning = 'DiagnosticInfo',
  StandfastTitle = 'Title',
  StandfastHidden = 'ErrorMsg',
}

--- Define what is not defined yet; a colour scheme's own wins.
function M.define()
  for group, link in pairs(links) do
    vim.api.nvim_set_hl(0, group, { link = link, default = true })
  end
end

return M
