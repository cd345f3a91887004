--- Choosing a session, by whatever the person uses for `vim.ui.select`.

local client = require('standfast.client')
local say = require('standfast.say')
local sessions = require('standfast.sessions')
local text = require('standfast.text')

local M = {}

local UNITS = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'min' } }

--- Age in one word. Pure.
---@param ms integer
---@return string
function M.age(ms)
  local seconds = math.max(0, math.floor(ms / 1000))
  for _, unit in ipairs(UNITS) do
    if seconds >= unit[1] then
      return ('%d %s'):format(math.floor(seconds / unit[1]), unit[2])
    end
  end
  return 'now'
end

--- One line for a session. Pure.
---@param session standfast.Session
---@param now_ms integer
---@return string
function M.label(session, now_ms)
  local parts = { session.title ~= '' and text.line(session.title, 50) or 'Untitled' }
  parts[#parts + 1] = session.lastRun and session.lastRun.status or 'new'
  if session.workspaceState ~= 'present' then
    parts[#parts + 1] = 'folder ' .. session.workspaceState
  end
  if session.worktree then
    parts[#parts + 1] = 'worktree ' .. text.line(session.worktree, 30)
  end
  parts[#parts + 1] = M.age(now_ms - session.updatedAtMs)
  return table.concat(parts, ' · ')
end

--- Let the person choose one of the folder's sessions.
---@param connection standfast.Connection
---@param callback fun(session: standfast.Session)
function M.session(connection, callback)
  sessions.list(connection, function(err, listed)
    if err then
      client.show_error(err)
    elseif #listed == 0 then
      say.info('no session here yet. :Standfast chat begins one.')
    else
      local seconds, microseconds = vim.uv.gettimeofday()
      local now_ms = seconds * 1000 + math.floor(microseconds / 1000)
      vim.ui.select(listed, {
        prompt = 'Sessions',
        kind = 'standfast.session',
        format_item = function(session)
          return M.label(session, now_ms)
        end,
      }, function(session)
        if session then
          callback(session)
        end
      end)
    end
  end)
end

return M
