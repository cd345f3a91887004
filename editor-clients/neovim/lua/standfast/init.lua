--- What other configuration may call. Everything here is also a `:Standfast` command.

local client = require('standfast.client')
local say = require('standfast.say')
local sessions = require('standfast.sessions')

-- These listen to the daemon from the first use on.
require('standfast.fresh')
require('standfast.notice')

local M = {}

---@return standfast.Connection? connection
local function connected(root, callback)
  client.ensure(root, function(connection, err)
    if err then
      client.show_error(err)
    else
      callback(connection)
    end
  end)
end

--- The session that a command means: that of the chat under the cursor, the last one open here, or the newest.
local function with_session(callback)
  local named = vim.b.standfast_session
  connected(client.root_of(), function(connection)
    local session_id = named or sessions.current(connection.root)
    sessions.list(connection, function(err, listed)
      local session = vim.iter(listed or {}):find(function(each)
        return not session_id or each.sessionId == session_id
      end)
      if err then
        client.show_error(err)
      elseif session then
        callback(connection, session)
      else
        say.info('no session here yet. :Standfast chat begins one.')
      end
    end)
  end)
end

--- Open the chat: the session that was last open here, the newest of the folder, or a new one.
---@param options? { new?: boolean, session_id?: string }
function M.chat(options)
  options = options or {}
  connected(client.root_of(), function(connection)
    local function open(session_id)
      require('standfast.chat').open(connection, session_id)
    end
    local function create()
      sessions.create(connection, function(err, session)
        if err then
          client.show_error(err)
        else
          open(session.sessionId)
        end
      end)
    end
    local session_id = options.session_id or (not options.new and sessions.current(connection.root)) or nil
    if session_id then
      open(session_id)
    elseif options.new then
      create()
    else
      sessions.list(connection, function(err, listed)
        if err then
          client.show_error(err)
        elseif listed[1] then
          open(listed[1].sessionId)
        else
          create()
        end
      end)
    end
  end)
end

--- Send a message to the session of this folder, without opening its chat.
---@param text string
---@param callback? fun(err?: standfast.Error, result?: table)
function M.send(text, callback)
  callback = callback or function(err)
    if err then
      client.show_error(err)
    end
  end
  with_session(function(connection, session)
    sessions.follow(connection, session.sessionId, function(err)
      if err then
        callback(err)
      else
        sessions.send(session.sessionId, text, sessions.new_message_id(), callback)
      end
    end)
  end)
end

--- Stop the run of the session. What has happened stays.
function M.stop()
  with_session(function(connection, session)
    if session.lastRun and session.lastRun.status == 'running' then
      client.request(connection, 'run/cancel', { runId = session.lastRun.runId })
    else
      say.info('nothing is running here.')
    end
  end)
end

local function resume(connection, session, more)
  local params = vim.tbl_extend('force', { runId = session.lastRun.runId }, more or {})
  client.request(connection, 'run/resume', params, function(err)
    if err then
      require('standfast.ways_out').offer(connection, session.sessionId, err, function(again)
        resume(connection, session, again)
      end)
    end
  end)
end

--- Go on with an interrupted or failed run, in its chat.
function M.resume()
  with_session(function(connection, session)
    local status = session.lastRun and session.lastRun.status
    if status ~= 'interrupted' and status ~= 'failed' then
      say.info('no run here was interrupted or failed.')
      return
    end
    require('standfast.chat').open(connection, session.sessionId, function(err)
      if not err then
        resume(connection, session)
      end
    end)
  end)
end

--- Choose a session of this folder.
function M.sessions()
  connected(client.root_of(), function(connection)
    require('standfast.pick').session(connection, function(session)
      require('standfast.chat').open(connection, session.sessionId)
    end)
  end)
end

--- Look at what needs you in this folder.
function M.review()
  connected(client.root_of(), function(connection)
    require('standfast.review').open(connection)
  end)
end

--- Look at and change the messages that wait.
function M.queue()
  with_session(function(connection, session)
    require('standfast.queue').open(connection, session.sessionId)
  end)
end

--- Give the session a goal, or change the one it has.
---@param objective? string without: you are asked
function M.goal(objective)
  with_session(function(connection, session)
    require('standfast.goal').edit(connection, session.sessionId, objective)
  end)
end

--- Summarise the history for the model now. The history itself stays whole.
function M.compact()
  with_session(function(connection, session)
    say.info('the history is being summarised for the model…')
    client.request(connection, 'session/compact', { sessionId = session.sessionId }, function(err)
      if err then
        client.show_error(err)
      else
        say.info('the history is summarised for the model; none of it was deleted.')
      end
    end)
  end)
end

--- Change what the session may do by itself.
---@param mode 'plan'|'ask'|'edit'|'auto'
function M.mode(mode)
  with_session(function(connection, session)
    client.request(connection, 'session/update', { sessionId = session.sessionId, mode = mode })
  end)
end

--- Hand the key of the model's service to the daemon. It is not kept in Neovim.
---@param callback? fun()
function M.login(callback)
  local key = vim.fn.inputsecret('Anthropic API key (empty: no change): ')
  if vim.trim(key) == '' then
    return
  end
  connected(client.root_of(), function(connection)
    client.request(connection, 'credentials/set', { provider = 'anthropic', key = vim.trim(key) }, function(err)
      if err then
        client.show_error(err)
      else
        say.info('the key is stored, readable by you only.')
        if callback then
          callback()
        end
      end
    end)
  end)
end

--- Let this folder's own hooks and settings act, or no longer.
function M.trust()
  local root = client.root_of()
  local choices = { 'Trust', 'Do not trust' }
  vim.ui.select(choices, { prompt = ('May the files of %s set hooks and settings?'):format(root) }, function(choice)
    if choice then
      connected(root, function(connection)
        local params = { workspaceUri = vim.uri_from_fname(root), trusted = choice == 'Trust' }
        client.request(connection, 'workspace/trust', params)
      end)
    end
  end)
end

--- Connect anew. Sessions and runs live in the daemon and go on.
function M.restart()
  client.restart(client.root_of())
end

--- For 'statusline': `%{v:lua.require'standfast'.statusline()}`.
---@return string
function M.statusline()
  return require('standfast.status').line()
end

return M
