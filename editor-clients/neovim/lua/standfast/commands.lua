--- `:Standfast`: one table of subcommands, with completion.

local say = require('standfast.say')

local M = {}

---@class standfast.Subcommand
---@field run fun(argument: string, bang: boolean)
---@field words? string[] what the argument can be

local function standfast()
  return require('standfast')
end

--- The logs: the daemon's, and below it what Neovim's own LSP client noted.
local function open_log()
  local log = require('standfast.health').daemon_log()
  vim.cmd.tabedit(vim.fn.fnameescape(vim.lsp.get_log_path()))
  if vim.uv.fs_stat(log) then
    vim.cmd.split(vim.fn.fnameescape(log))
  else
    say.info('the daemon has no log yet at ' .. log)
  end
  vim.cmd.normal({ args = { 'G' }, bang = true })
end

---@type table<string, standfast.Subcommand>
local subcommands = {
  chat = {
    run = function(_, bang)
      standfast().chat({ new = bang })
    end,
  },
  goal = {
    run = function(objective)
      standfast().goal(vim.trim(objective) ~= '' and objective or nil)
    end,
  },
  log = { run = open_log },
  login = {
    run = function()
      standfast().login()
    end,
  },
  mode = {
    run = function(mode)
      if vim.list_contains({ 'plan', 'ask', 'edit', 'auto' }, mode) then
        standfast().mode(mode)
      else
        say.error('the modes are plan, ask, edit and auto.')
      end
    end,
    words = { 'plan', 'ask', 'edit', 'auto' },
  },
}
for _, name in ipairs({ 'compact', 'queue', 'restart', 'resume', 'review', 'sessions', 'stop', 'trust' }) do
  subcommands[name] = {
    run = function()
      standfast()[name]()
    end,
  }
end

--- The subcommands by name, in order.
---@return string[]
function M.names()
  local names = vim.tbl_keys(subcommands)
  table.sort(names)
  return names
end

local function matching(words, start)
  return vim.tbl_filter(function(word)
    return vim.startswith(word, start)
  end, words)
end

--- For `nvim_create_user_command`.
---@param start string the word under the cursor
---@param line string
---@return string[]
function M.complete(start, line)
  local name = line:match('Standfast!?%s+(%S+)%s')
  if name then
    return matching(subcommands[name] and subcommands[name].words or {}, start)
  end
  return matching(M.names(), start)
end

--- For `nvim_create_user_command`. Without a subcommand: the chat.
---@param command { fargs: string[], bang: boolean }
function M.run(command)
  local name = command.fargs[1] or 'chat'
  local subcommand = subcommands[name]
  if subcommand then
    subcommand.run(table.concat(command.fargs, ' ', 2), command.bang)
  else
    local known = table.concat(M.names(), ', ')
    say.error(('“%s” is no subcommand. There are: %s.'):format(name, known))
  end
end

return M
