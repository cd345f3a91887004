--- The byte pipe to `standfast lsp`, with two things that Neovim's own does not do:
--- requests that are open when the server is lost fail, and a refused `initialize` is told instead of asserted.

local M = {}

--- The code with which a request fails whose server was lost.
M.LOST = -32097

---@class standfast.TransportHooks
---@field refused fun(err: lsp.ResponseError) the daemon would not take us; nothing else follows
---@field leaving fun() we end it ourselves: no reason to start again
---@field exited fun(code: integer, signal: integer) it has ended; every open request has failed by now

--- What `vim.lsp.Config.cmd` takes. Raises as `vim.lsp.rpc.start` does when the program cannot be started.
---@param command string[]
---@param options { cwd?: string, env?: table<string, string> }
---@param hooks standfast.TransportHooks
---@return fun(dispatchers: vim.lsp.rpc.Dispatchers): vim.lsp.rpc.PublicClient
function M.new(command, options, hooks)
  return function(dispatchers)
    local open, number = {}, 0
    local lost = { code = M.LOST, message = 'The connection to Standfast was lost before the answer came.' }

    local function fail_all()
      for _, answered in ipairs(vim.tbl_values(open)) do
        answered(lost)
      end
    end

    local rpc
    rpc = vim.lsp.rpc.start(command, {
      notification = dispatchers.notification,
      server_request = dispatchers.server_request,
      on_error = dispatchers.on_error,
      on_exit = function(code, signal)
        vim.schedule(fail_all)
        dispatchers.on_exit(0, 0) -- Neovim need not warn: whoever listens to `exited` says what is worth saying
        vim.schedule(function()
          hooks.exited(code, signal)
        end)
      end,
    }, options)

    local request = rpc.request
    ---@diagnostic disable-next-line: duplicate-set-field
    rpc.request = function(method, params, callback, sent)
      number = number + 1
      local key = number
      local function answered(err, ...)
        if not open[key] then
          return
        end
        open[key] = nil
        if method == 'initialize' and err then
          if err ~= lost then
            hooks.refused(err)
            rpc.terminate()
          end
          return
        end
        return callback(err, ...)
      end
      open[key] = answered
      if method == 'shutdown' then
        hooks.leaving()
      end
      local ok, id = request(method, params, answered, sent)
      if not ok then
        open[key] = nil
      end
      return ok, id
    end

    local terminate = rpc.terminate
    ---@diagnostic disable-next-line: duplicate-set-field
    rpc.terminate = function()
      hooks.leaving()
      terminate()
    end
    return rpc
  end
end

return M
