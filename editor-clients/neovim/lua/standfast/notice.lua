--- After a crash: says once, without a question, what was interrupted, what is certain and what is not.

local client = require('standfast.client')
local say = require('standfast.say')
local sessions = require('standfast.sessions')
local text = require('standfast.text')

local M = {}

--- Runs that were told of already.
---@type table<string, true>
local told = {}

local function said_of(call)
  local parts = {}
  for _, target in ipairs(call.targets) do
    local what = target.uri and vim.fs.basename(vim.uri_to_fname(target.uri)) or target.command or call.tool
    parts[#parts + 1] = ('%s: %s'):format(text.line(what, 40), target.verdict)
  end
  return #parts > 0 and table.concat(parts, ', ') or ('%s: %s'):format(text.line(call.tool, 30), call.verdict)
end

--- The sentence for an interrupted run. Pure.
---@param session standfast.Session
---@param recovery standfast.Recovery
---@return string
function M.sentence(session, recovery)
  local title = session.title ~= '' and ('“%s”'):format(text.line(session.title, 40)) or 'a session'
  local calls = vim.tbl_map(said_of, recovery.calls)
  local found = #calls > 0 and table.concat(calls, ' · ') or 'Nothing is uncertain'
  return ('a run in %s was interrupted (:Standfast resume, review). %s.'):format(title, found)
end

--- The session is followed from here on: its open questions concern the person too.
local function tell(connection, session)
  local run_id = session.lastRun.runId
  if told[run_id] then
    return
  end
  told[run_id] = true
  if not sessions.current(connection.root) then
    sessions.choose(connection.root, session.sessionId)
  end
  sessions.follow(connection, session.sessionId, function(err, view)
    if err then
      told[run_id] = nil
    else
      say.warn(M.sentence(session, view.recovery or { calls = {} }))
    end
  end)
end

client.on('ready', function(connection)
  sessions.list(connection, function(_, listed)
    local interrupted = vim.iter(listed or {}):find(function(session)
      return session.status == 'active' and session.lastRun and session.lastRun.status == 'interrupted'
    end)
    if interrupted then
      tell(connection, interrupted)
    end
  end)
end)

return M
