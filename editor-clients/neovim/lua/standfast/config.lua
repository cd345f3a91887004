--- What the user set: `vim.g.standfast` over the defaults, checked. There is no setup() to call.
--- A project cannot set any of it: `vim.g` belongs to the user's own configuration.

local M = {}

---@class standfast.Config
---@field cmd string[] what starts or joins the daemon
---@field env table<string, string> more environment for it
---@field root_markers string[] what makes a folder a workspace
---@field chat standfast.ChatConfig
---@field permission standfast.PermissionConfig
---@field restart standfast.RestartConfig
---@field ascii boolean plain signs, for terminals without Unicode

---@class standfast.ChatConfig
---@field position 'right'|'left'|'bottom'|'tab'
---@field size number columns or lines of the chat; below 1: a share of the screen
---@field input_height integer lines of the message box

---@class standfast.PermissionConfig
---@field open 'chat'|'always'|'never' when a question opens by itself: while you are in the chat, always, or never

---@class standfast.RestartConfig
---@field attempts integer starts within `within_ms` before it waits for you
---@field within_ms integer
---@field first_ms integer the first pause; each further one is twice as long
---@field most_ms integer the longest pause

---@type standfast.Config
local defaults = {
  cmd = { 'standfast', 'lsp' },
  env = {},
  root_markers = { '.git', '.jj', '.hg', '.svn' },
  chat = { position = 'right', size = 0.45, input_height = 4 },
  permission = { open = 'chat' },
  restart = { attempts = 5, within_ms = 180000, first_ms = 250, most_ms = 15000 },
  ascii = false,
}

local function one_of(...)
  local words = { ... }
  return function(value)
    return vim.list_contains(words, value)
  end, 'one of: ' .. table.concat(words, ', ')
end

local function positive(value)
  return type(value) == 'number' and value > 0
end

local function strings(value)
  return vim.islist(value) and #value > 0 and vim.iter(value):all(function(each)
    return type(each) == 'string'
  end)
end

--- Key → { check, what it must be }. Nested keys carry a dot.
local checks = {
  cmd = { strings, 'a list of strings, such as { "standfast", "lsp" }' },
  env = {
    function(value)
      return type(value) == 'table'
    end,
    'a table of strings',
  },
  root_markers = { strings, 'a list of file or folder names' },
  ['chat.position'] = { one_of('right', 'left', 'bottom', 'tab') },
  ['chat.size'] = { positive, 'a number above 0' },
  ['chat.input_height'] = { positive, 'a number above 0' },
  ['permission.open'] = { one_of('chat', 'always', 'never') },
  ['restart.attempts'] = { positive, 'a number above 0' },
  ['restart.within_ms'] = { positive, 'a number above 0' },
  ['restart.first_ms'] = { positive, 'a number above 0' },
  ['restart.most_ms'] = { positive, 'a number above 0' },
  ascii = {
    function(value)
      return type(value) == 'boolean'
    end,
    'true or false',
  },
}

--- Copy what is right from `given` into `target`; say what is not.
local function take(given, target, prefix, problems)
  for key, value in pairs(given) do
    local name = prefix .. key
    local check = checks[name]
    if check then
      if check[1](value) then
        target[key] = value
      else
        problems[#problems + 1] = ('vim.g.standfast.%s must be %s'):format(name, check[2])
      end
    elseif type(target[key]) == 'table' and type(value) == 'table' then
      take(value, target[key], name .. '.', problems)
    else
      problems[#problems + 1] = ('vim.g.standfast.%s is no setting of Standfast'):format(name)
    end
  end
end

--- The settings, and a sentence for each that was wrong and left at its default.
---@return standfast.Config config
---@return string[] problems
function M.read()
  local config, problems = vim.deepcopy(defaults), {}
  local given = vim.g.standfast
  if type(given) == 'table' then
    take(given, config, '', problems)
  elseif given ~= nil then
    problems[1] = 'vim.g.standfast must be a table'
  end
  return config, problems
end

--- The settings; wrong ones are left at their default (`:checkhealth standfast` names them).
---@return standfast.Config
function M.get()
  return (M.read())
end

return M
