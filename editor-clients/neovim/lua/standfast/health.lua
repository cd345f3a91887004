--- `:checkhealth standfast`: what is there, what is not, and how to repair it. Starts no daemon.

local config = require('standfast.config')

local M = {}

local TIMEOUT_MS = 5000

--- Where the daemon writes its log (the places of the command line: STANDFAST_HOME, else XDG).
---@return string
function M.daemon_log()
  local env = vim.tbl_extend('force', vim.fn.environ(), config.get().env)
  if (env.STANDFAST_HOME or '') ~= '' then
    return vim.fs.joinpath(env.STANDFAST_HOME, 'state', 'log', 'daemon.log')
  end
  local state = env.XDG_STATE_HOME or ''
  if not vim.startswith(state, '/') then
    state = vim.fs.joinpath(env.HOME or vim.env.HOME, '.local', 'state')
  end
  return vim.fs.joinpath(state, 'standfast', 'log', 'daemon.log')
end

local function check_neovim()
  if vim.fn.has('nvim-0.11') == 1 then
    vim.health.ok('Neovim ' .. tostring(vim.version()))
  else
    vim.health.error('Neovim 0.11 is needed, this is ' .. tostring(vim.version()), { 'Install a newer Neovim.' })
  end
  if not vim.lsp.is_enabled or not vim.lsp.is_enabled('standfast') then
    vim.health.warn('the server is not enabled: no diagnostics until the chat is opened', {
      "Add to your configuration: vim.lsp.enable('standfast')",
    })
  else
    vim.health.ok("vim.lsp.enable('standfast')")
  end
end

local function check_settings()
  local _, problems = config.read()
  for _, problem in ipairs(problems) do
    vim.health.error(problem, { 'See :help standfast-settings. Until then the default holds.' })
  end
  if #problems == 0 then
    vim.health.ok('settings')
  end
end

--- The command that asks the daemon for its state: what starts the server, with other words behind it.
local function status_command(cmd)
  local words = vim.list_slice(cmd, 1, #cmd - 1)
  return vim.list_extend(words, { 'daemon', 'status', '--json' })
end

local function ask_status()
  local set = config.get()
  if vim.fn.executable(set.cmd[1]) == 0 then
    return nil, ('%s is not executable or not on your PATH'):format(set.cmd[1])
  end
  if set.cmd[#set.cmd] ~= 'lsp' then
    return nil, 'vim.g.standfast.cmd does not end in "lsp", so its daemon cannot be asked'
  end
  local done = vim.system(status_command(set.cmd), { env = set.env, text = true, timeout = TIMEOUT_MS }):wait()
  local ok, status = pcall(vim.json.decode, done.stdout)
  if not ok or type(status) ~= 'table' then
    return nil, 'standfast daemon status failed: ' .. require('standfast.text').line(done.stderr or '', 200)
  end
  return status
end

local function check_version(status)
  local ours = require('standfast.client').PROTOCOL
  if status.protocolVersion == ours then
    vim.health.ok(('daemon %s speaks protocol %d, as this plugin does'):format(status.version, ours))
  else
    vim.health.error(
      ('daemon %s speaks protocol %s, this plugin speaks %d'):format(status.version, status.protocolVersion, ours),
      { 'Update the older of the two, then: standfast daemon stop; :Standfast restart' }
    )
  end
end

local function check_daemon()
  local status, problem = ask_status()
  if not status then
    vim.health.error(problem, {
      'Install Standfast: pipx install standfast',
      'or say where it is: vim.g.standfast = { cmd = { "/path/to/standfast", "lsp" } }',
    })
  elseif not status.running then
    vim.health.ok('the daemon is not running; it starts with the first file or chat')
  else
    local counts = ('pid %d, %d clients, %d runs'):format(status.pid, status.clients, status.runs)
    vim.health.ok(('the daemon is running (%s)'):format(counts))
    check_version(status)
    vim.health.info('store: ' .. status.store)
    vim.health.info('model service: ' .. status.baseUrl)
    for _, each in ipairs(status.degraded) do
      vim.health.warn(each.message, { 'Run: standfast doctor' })
    end
  end
  vim.health.info('log of the daemon: ' .. M.daemon_log())
end

local function check_connections()
  for _, connection in ipairs(require('standfast.client').all()) do
    local said = ('%s: %s'):format(connection.root, connection.state)
    if connection.state == 'ready' then
      vim.health.ok(('%s, sandbox %s'):format(said, connection.capability.sandbox or 'unknown'))
    elseif connection.state == 'failed' then
      vim.health.error(said .. ': ' .. connection.problem, { ':Standfast log', ':Standfast restart' })
    else
      vim.health.info(said)
    end
  end
end

--- Called by `:checkhealth`.
function M.check()
  vim.health.start('standfast: Neovim')
  check_neovim()
  check_settings()
  vim.health.start('standfast: daemon')
  check_daemon()
  vim.health.start('standfast: folders')
  check_connections()
end

return M
