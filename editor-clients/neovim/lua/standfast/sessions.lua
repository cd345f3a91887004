--- The sessions that this Neovim follows: attach, keep up, catch up after a loss. Owns the views; draws nothing.

local client = require('standfast.client')
local state = require('standfast.state')

local M = {}

local PAGE = 200
local CATCH_UP = 1000

---@class standfast.Followed
---@field connection standfast.Connection
---@field view standfast.View
---@field behind boolean an answer with what was missed is on its way
---@field held table[] events that came meanwhile
---@field waiting fun(err?: standfast.Error, view?: standfast.View)[] who wants to know when it has come
---@field paging? boolean an older page is on its way

---@type table<string, standfast.Followed>
local followed = {}

--- Folder → session id → what the daemon last said of it.
---@type table<string, table<string, standfast.Session>>
local known = {}

--- Folder → the session that was last open here.
---@type table<string, string>
local current = {}

---@type fun(session_id: string, event?: table)[]
local listeners = {}

--- Call `listener(session_id, event?)` whenever a view has changed.
---@param listener fun(session_id: string, event?: table)
function M.on_change(listener)
  table.insert(listeners, listener)
end

local function changed(session_id, event)
  for _, listener in ipairs(listeners) do
    listener(session_id, event)
  end
end

---@param session_id string
---@return standfast.View?
function M.view(session_id)
  return followed[session_id] and followed[session_id].view
end

---@param session_id string
---@return standfast.Connection?
function M.connection(session_id)
  return followed[session_id] and followed[session_id].connection
end

--- The session that was last open in a folder, in this Neovim.
---@param root string
---@return string?
function M.current(root)
  return current[root]
end

--- What is known of the sessions of a folder, without asking.
---@param root string
---@return table<string, standfast.Session>
function M.known(root)
  return known[root] or {}
end

local function learn(connection, session)
  known[connection.root] = known[connection.root] or {}
  known[connection.root][session.sessionId] = session
  local at = followed[session.sessionId]
  if at then
    at.view.session = session
  end
end

-- Keeping up ----------------------------------------------------------------------------------------------------------

local attach

--- Take an event, or hold it while older ones are on their way; a gap means that we must ask.
local function take(at, event)
  if at.behind then
    at.held[#at.held + 1] = event
    return
  end
  local outcome = state.apply(at.view, event)
  if outcome == 'applied' then
    changed(at.view.sessionId, event)
  elseif outcome == 'gap' then
    attach(at)
  end
end

local function finish(at, err)
  local held, waiting = at.held, at.waiting
  at.held, at.waiting, at.behind = {}, {}, false
  for _, event in ipairs(held) do
    take(at, event)
  end
  changed(at.view.sessionId)
  for _, callback in ipairs(waiting) do
    callback(err, not err and at.view or nil)
  end
end

local function fetch_rest(at)
  local params = { sessionId = at.view.sessionId, afterSeq = at.view.headSeq, limit = CATCH_UP }
  client.request(at.connection, 'session/events', params, function(err, page)
    for _, event in ipairs(page and page.events or {}) do
      state.apply(at.view, event)
    end
    if page and page.hasMore and #page.events > 0 then
      fetch_rest(at)
    else
      finish(at, err)
    end
  end)
end

--- Attach, with what we hold already; the answer brings what we missed. Whoever is in `waiting` is told of the end.
function attach(at)
  local view = at.view
  at.behind = true
  local joined = view.headSeq > 0
  client.request(at.connection, 'session/attach', {
    sessionId = view.sessionId,
    afterSeq = joined and view.headSeq or nil,
    afterHash = joined and view.headHash or nil,
    limit = PAGE,
  }, function(err, result)
    if err then
      finish(at, err)
      return
    end
    learn(at.connection, result.session)
    at.view = state.attached(at.view, result)
    if joined and result.hasMore and not result.damage then
      fetch_rest(at)
    else
      finish(at)
    end
  end)
end

client.on('event', function(_, params)
  local at = followed[params.sessionId]
  if at then
    take(at, params.event)
  end
end)

client.on('delta', function(_, params)
  local at = followed[params.sessionId]
  if at and not at.behind and state.delta(at.view, params) then
    changed(params.sessionId)
  end
end)

client.on('session/changed', function(connection, params)
  learn(connection, params.session)
  changed(params.session.sessionId)
  vim.cmd.redrawstatus({ bang = true })
end)

client.on('session/deleted', function(connection, params)
  local session_id = params.sessionId
  M.known(connection.root)[session_id] = nil
  if current[connection.root] == session_id then
    current[connection.root] = nil
  end
  local at = followed[session_id]
  if at then
    at.view.deleted = true -- what was said stays on the screen, and says that it is gone
    changed(session_id)
  end
end)

client.on('lost', function(connection)
  for session_id, at in pairs(followed) do
    if at.connection == connection then
      at.behind, at.held = false, {} -- a failed `attach` tells those who wait
      state.rewind(at.view)
      changed(session_id)
    end
  end
end)

client.on('ready', function(connection)
  for _, at in pairs(followed) do
    if at.connection == connection and not at.view.deleted then
      attach(at)
    end
  end
end)

-- What a person asks for ------------------------------------------------------------------------------------------------

--- Follow a session. Calls back once its newest page is there, and with it what was verified after a crash.
---@param connection standfast.Connection
---@param session_id string
---@param callback fun(err?: standfast.Error, view?: standfast.View)
function M.follow(connection, session_id, callback)
  local at = followed[session_id]
  if at and at.view.headSeq > 0 and not at.behind then
    callback(nil, at.view)
    return
  end
  if not at then
    at = { connection = connection, view = state.new(session_id), behind = false, held = {}, waiting = {} }
    followed[session_id] = at
  end
  table.insert(at.waiting, callback)
  client.ensure(connection.root, function(_, err)
    if err then
      finish(at, err)
    elseif not at.behind then -- becoming ready attaches all that are followed
      attach(at)
    end
  end)
end

--- Remember which session is the one of a folder, for commands that name none.
---@param root string
---@param session_id string
function M.choose(root, session_id)
  current[root] = session_id
end

--- Follow a session no longer.
---@param session_id string
function M.leave(session_id)
  local at = followed[session_id]
  followed[session_id] = nil
  if at and at.connection.state == 'ready' then
    client.request(at.connection, 'session/detach', { sessionId = session_id }, function() end)
  end
end

--- The sessions of a folder, the newest first.
---@param connection standfast.Connection
---@param callback fun(err?: standfast.Error, sessions?: standfast.Session[])
function M.list(connection, callback)
  local params = { workspaceUri = vim.uri_from_fname(connection.root), limit = PAGE }
  client.request(connection, 'session/list', params, function(err, result)
    for _, session in ipairs(result and result.sessions or {}) do
      learn(connection, session)
    end
    callback(err, result and result.sessions)
  end)
end

---@param connection standfast.Connection
---@param callback fun(err?: standfast.Error, session?: standfast.Session)
function M.create(connection, callback)
  local params = { workspaceUri = vim.uri_from_fname(connection.root) }
  client.request(connection, 'session/create', params, function(err, result)
    if result then
      learn(connection, result.session)
    end
    callback(err, result and result.session)
  end)
end

--- Load the page before what is held.
---@param session_id string
function M.older(session_id)
  local at = followed[session_id]
  if not at or not at.view.hasOlder or at.paging then
    return
  end
  at.paging = true
  local params = { sessionId = session_id, beforeSeq = at.view.firstSeq, limit = PAGE }
  client.request(at.connection, 'session/events', params, function(err, page)
    at.paging = false
    if err then
      client.show_error(err)
    elseif #page.events > 0 and page.events[#page.events].seq == at.view.firstSeq - 1 then
      at.view = state.older(at.view, page.events, page.hasMore)
      changed(session_id)
    end
  end)
end

local sent = 0

--- An id for a message, so that sending it twice is sending it once.
---@return string
function M.new_message_id()
  sent = sent + 1
  return ('nvim-%d-%x-%d'):format(vim.uv.os_getpid(), vim.uv.hrtime(), sent)
end

--- Send a message. With the same id it is the same message, also after a lost connection.
---@param session_id string
---@param text string
---@param message_id string
---@param callback fun(err?: standfast.Error, result?: standfast.RunStartResult)
function M.send(session_id, text, message_id, callback)
  local at = assert(followed[session_id], 'the session is not open')
  local params = { sessionId = session_id, text = text, clientMessageId = message_id }
  client.request(at.connection, 'run/start', params, callback)
end

return M
