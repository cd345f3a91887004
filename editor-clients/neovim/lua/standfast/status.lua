--- One word for the statusline: what Standfast is doing in the folder of the current buffer.

local client = require('standfast.client')
local permission = require('standfast.permission')
local sessions = require('standfast.sessions')

local M = {}

local NEEDS = { ['patch-conflict'] = true, ['file-changed'] = true, ['partial-write'] = true, ['diverged-file'] = true,
  ['uncertain-call'] = true, ['interrupted-run'] = true, ['history-damaged'] = true, ['trust-lapsed'] = true } -- stylua: ignore

---@class standfast.Status
---@field state 'off'|'connecting'|'disconnected'|'needs you'|'running'|'degraded'|'idle'
---@field count integer how many things need you

--- How things are in a folder.
---@param root string
---@return standfast.Status
function M.of(root)
  local connection = client.find(root)
  if not connection or connection.state == 'stopped' then
    return { state = 'off', count = 0 }
  elseif connection.state == 'starting' then
    return { state = 'connecting', count = 0 }
  elseif connection.state ~= 'ready' then
    return { state = 'disconnected', count = 0 }
  end
  local count = vim.iter(permission.open()):filter(function(question)
    return question.connection == connection
  end):fold(0, function(sum)
    return sum + 1
  end)
  for _, item in ipairs(connection.items) do
    count = count + (NEEDS[item.code] and 1 or 0)
  end
  local running = vim.iter(vim.tbl_values(sessions.known(root))):any(function(session)
    return session.lastRun ~= nil and session.lastRun.status == 'running'
  end)
  local state = count > 0 and 'needs you' or running and 'running' or #connection.degraded > 0 and 'degraded' or 'idle'
  return { state = state, count = count }
end

--- For 'statusline': `%{v:lua.require'standfast'.statusline()}`. Empty where Standfast is off.
---@return string
function M.line()
  local status = M.of(client.root_of(0))
  if status.state == 'off' then
    return ''
  end
  return 'Standfast: ' .. status.state .. (status.count > 0 and (' (%d)'):format(status.count) or '')
end

return M
