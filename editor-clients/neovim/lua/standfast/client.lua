--- The connection to the daemon, one a workspace folder: start, ask, listen, start again with growing pauses.
--- Decides nothing about sessions; who wants to know what the daemon says listens with `on`.

local config = require('standfast.config')
local nulls = require('standfast.nulls')
local say = require('standfast.say')
local transport = require('standfast.transport')

local M = {}

M.PROTOCOL = 1

---@class standfast.Error
---@field reason string one word for programs
---@field message string a sentence for people
---@field code? integer
---@field data? table

---@class standfast.Connection
---@field root string the folder
---@field client? vim.lsp.Client
---@field state 'starting'|'ready'|'waiting'|'failed'|'stopped'
---@field problem? string what a person should do, when `failed`
---@field capability standfast.ServerCapability|{} the daemon's version and sandbox; empty before it is ready
---@field buffers table<integer, true> to attach again after a restart
---@field losses integer[] when it was lost, in ms
---@field link? { leaving: boolean } the server process of now
---@field waiting fun(err?: standfast.Error)[]
---@field items standfast.AttentionItem[] what a person must look at in this folder
---@field degraded standfast.Degraded[]
---@field timer? uv.uv_timer_t

---@type table<string, standfast.Connection>
local connections = {}

---@type table<string, fun(connection: standfast.Connection, params: table)[]>
local listeners = {}

local function tell(topic, connection, params)
  for _, listener in ipairs(listeners[topic] or {}) do
    listener(connection, params or {})
  end
end

--- Call `listener(connection, params)` for: 'ready', 'lost', 'state', or a notification's name without its `standfast/`.
---@param topic string
---@param listener fun(connection: standfast.Connection, params: table)
function M.on(topic, listener)
  listeners[topic] = listeners[topic] or {}
  table.insert(listeners[topic], listener)
end

local function connection_of(root)
  local connection = connections[root]
  if not connection then
    connection = {
      root = root,
      state = 'stopped',
      capability = {},
      buffers = {},
      losses = {},
      waiting = {},
      items = {},
      degraded = {},
    }
    connections[root] = connection
  end
  return connection
end

---@return standfast.Connection[]
function M.all()
  return vim.tbl_values(connections)
end

---@param root string
---@return standfast.Connection?
function M.find(root)
  return connections[root]
end

--- The folder that a buffer belongs to: its repository, else the current directory.
---@param bufnr? integer
---@return string
function M.root_of(bufnr)
  bufnr = bufnr or vim.api.nvim_get_current_buf()
  local tagged = vim.b[bufnr].standfast_root
  if tagged then
    return tagged
  end
  local cwd = assert(vim.uv.cwd())
  local start = vim.bo[bufnr].buftype == '' and vim.api.nvim_buf_get_name(bufnr) ~= '' and bufnr or cwd
  local root = vim.fs.root(start, config.get().root_markers) or cwd
  return vim.fs.normalize(vim.uv.fs_realpath(root) or root)
end

local function move(connection, state, problem)
  connection.state, connection.problem = state, problem
  tell('state', connection)
  vim.cmd.redrawstatus({ bang = true })
end

--- The error of an answer, in our form.
local function error_of(err)
  local data = type(err.data) == 'table' and err.data or nil
  local reason = data and data.reason or (err.code == transport.LOST and 'Disconnected') or 'Error'
  local message = err.message or 'The daemon refused, and did not say why.'
  return { reason = reason, message = message, code = err.code, data = data }
end

local function answer_waiting(connection, err)
  local waiting = connection.waiting
  connection.waiting = {}
  for _, callback in ipairs(waiting) do
    callback(err)
  end
end

local function give_up(connection, message)
  move(connection, 'failed', message)
  answer_waiting(connection, { reason = 'Disconnected', message = message })
  say.error(message)
end

--- Attach the buffers that were attached before the server was lost.
local function attach_buffers(connection)
  for bufnr in pairs(connection.buffers) do
    if vim.api.nvim_buf_is_loaded(bufnr) then
      vim.lsp.buf_attach_client(bufnr, connection.client.id)
    else
      connection.buffers[bufnr] = nil
    end
  end
end

local function ready(client, result)
  local connection = connection_of(client.root_dir)
  connection.client = client
  connection.capability = vim.tbl_get(result.capabilities, 'experimental', 'standfast') or {}
  attach_buffers(connection)
  move(connection, 'ready')
  answer_waiting(connection)
  tell('ready', connection)
end

local function start(connection)
  local found = vim.lsp.config.standfast
  if not found then
    give_up(connection, 'lsp/standfast.lua is not on the runtimepath. Add the plugin to it and start Neovim again.')
    return
  end
  move(connection, 'starting')
  local settings = vim.tbl_extend('force', found, { name = 'standfast', root_dir = connection.root })
  local ok, id = pcall(vim.lsp.start, settings, { attach = false, silent = true })
  if not ok or not id then
    local way_out = 'Install Standfast, or set vim.g.standfast.cmd; then :Standfast restart.'
    give_up(connection, ('%s could not be started. %s'):format(config.get().cmd[1], way_out))
  end
end

local function start_again(connection)
  local limits = config.get().restart
  local now = vim.uv.now()
  connection.losses = vim.tbl_filter(function(at)
    return now - at < limits.within_ms
  end, connection.losses)
  table.insert(connection.losses, now)
  if #connection.losses >= limits.attempts then
    give_up(connection, 'the daemon was lost again and again. See :checkhealth standfast, then :Standfast restart.')
    return
  end
  move(connection, 'waiting')
  local pause = math.min(limits.first_ms * 2 ^ (#connection.losses - 1), limits.most_ms)
  connection.timer = vim.defer_fn(function()
    connection.timer = nil
    if connection.state == 'waiting' then
      start(connection)
    end
  end, pause)
end

--- The server of `link` has ended. A link that was replaced meanwhile is nobody's business any more.
local function exited(connection, link, exit)
  if connection.link ~= link or vim.v.exiting ~= vim.NIL then
    return
  end
  connection.client, connection.link = nil, nil
  tell('lost', connection, exit)
  if connection.state == 'failed' then
    return
  elseif link.leaving then
    move(connection, 'stopped')
    answer_waiting(connection, { reason = 'Disconnected', message = 'The connection to Standfast was closed.' })
  else
    start_again(connection)
  end
end

--- Start or join the daemon for a folder. `callback(connection, err)` once it is ready, or will not be.
---@param root string
---@param callback fun(connection: standfast.Connection, err?: standfast.Error)
function M.ensure(root, callback)
  local connection = connection_of(root)
  if connection.state == 'ready' then
    callback(connection)
    return
  end
  table.insert(connection.waiting, function(err)
    callback(connection, err)
  end)
  if connection.state == 'stopped' or connection.state == 'failed' then
    connection.losses = {}
    start(connection)
  end
end

--- Ask the daemon. The callback is called exactly once, also when the daemon is lost meanwhile (reason `Disconnected`).
---@param connection standfast.Connection
---@param method string without `standfast/`
---@param params table
---@param callback? fun(err?: standfast.Error, result?: table) without it, an error is shown
function M.request(connection, method, params, callback)
  callback = callback or function(err)
    if err then
      M.show_error(err)
    end
  end
  M.ensure(connection.root, function(_, err)
    if err then
      callback(err)
      return
    end
    local sent = connection.client:request('standfast/' .. method, params, function(failure, result)
      if failure then
        callback(error_of(failure))
      else
        callback(nil, nulls.drop(result))
      end
    end)
    if not sent then
      callback({ reason = 'Disconnected', message = 'Standfast is not connected. Nothing was sent.' })
    end
  end)
end

--- Tell a person of an error, in the daemon's own words.
---@param err standfast.Error
function M.show_error(err)
  say.error(require('standfast.text').line(err.message, 400))
end

--- End the connection of a folder, if there is one, and start it again.
---@param root string
function M.restart(root)
  local connection = connection_of(root)
  connection.losses = {}
  if connection.client then
    local client = connection.client
    connection.client, connection.link = nil, nil
    client:stop(true)
    tell('lost', connection, {})
  end
  start(connection)
end

--- Close the connections. The daemon, and what runs in it, goes on.
function M.close()
  for _, connection in pairs(connections) do
    if connection.client then
      connection.client:stop()
    end
  end
end

--- Every notification of the daemon goes to those who listen to its name.
local function handlers()
  local table_ = {}
  for _, name in ipairs({
    'event',
    'delta',
    'session/changed',
    'session/deleted',
    'attention/changed',
    'permission/resolved',
    'daemon/changed',
  }) do
    table_['standfast/' .. name] = function(_, params, context)
      local client = vim.lsp.get_client_by_id(context.client_id)
      if client then
        tell(name, connection_of(client.root_dir), nulls.drop(params))
      end
    end
  end
  table_['standfast/permission/request'] = function(_, params, context)
    local client = assert(vim.lsp.get_client_by_id(context.client_id))
    return require('standfast.permission').ask(connection_of(client.root_dir), nulls.drop(params))
  end
  return table_
end

M.on('attention/changed', function(connection, params)
  if vim.uri_to_fname(params.workspaceUri) == connection.root then
    connection.items = params.items
  end
  vim.cmd.redrawstatus({ bang = true })
end)

M.on('daemon/changed', function(connection, params)
  connection.degraded = params.degraded
  vim.cmd.redrawstatus({ bang = true })
end)

--- What `lsp/standfast.lua` returns.
---@return vim.lsp.Config
function M.lsp_config()
  local hello = { protocolVersion = M.PROTOCOL, clientId = ('neovim-%d'):format(vim.uv.os_getpid()) }
  return {
    cmd = function(dispatchers, settings)
      local connection = connection_of(settings and settings.root_dir or M.root_of())
      local link = { leaving = false }
      connection.link = link
      local set = config.get()
      return transport.new(set.cmd, { env = set.env }, {
        refused = function(err)
          give_up(connection, error_of(err).message)
        end,
        leaving = function()
          link.leaving = true
        end,
        exited = function(code, signal)
          exited(connection, link, { code = code, signal = signal })
        end,
      })(dispatchers)
    end,
    root_dir = function(bufnr, on_dir)
      if vim.bo[bufnr].buftype == '' and vim.api.nvim_buf_get_name(bufnr):find('^/') then
        on_dir(M.root_of(bufnr))
      end
    end,
    capabilities = { experimental = { standfast = hello } },
    handlers = handlers(),
    commands = {
      ['standfast.diff.show'] = function(command, context)
        local client = assert(vim.lsp.get_client_by_id(context.client_id))
        require('standfast.diff').show(connection_of(client.root_dir), command.arguments[1])
      end,
    },
    on_init = ready,
    on_attach = function(client, bufnr)
      connection_of(client.root_dir).buffers[bufnr] = true
    end,
  }
end

return M
