--- The goal of a session: set it, change it, let it rest, take it away.

local client = require('standfast.client')
local text = require('standfast.text')

local M = {}

local function ask(connection, session_id, method, params)
  params.sessionId = session_id
  client.request(connection, 'goal/' .. method, params)
end

local function ask_objective(before, callback)
  local prompt = 'Goal (the agent goes on by itself until it is reached): '
  vim.ui.input({ prompt = prompt, default = before }, function(input)
    if input and vim.trim(input) ~= '' then
      callback(vim.trim(input))
    end
  end)
end

local function change(connection, session_id, goal)
  ask_objective(goal.objective, function(objective)
    ask(connection, session_id, 'update', { objective = objective, status = 'active' })
  end)
end

local function act(connection, session_id, goal)
  local function to(status)
    return function()
      ask(connection, session_id, 'update', { status = status })
    end
  end
  local choices = {
    goal.status == 'active' and { 'Pause', to('paused') } or { 'Go on', to('active') },
    { 'Change', function() change(connection, session_id, goal) end },
    { 'Reached', to('complete') },
    { 'Take away', function() ask(connection, session_id, 'clear', {}) end },
  } -- stylua: ignore
  local prompt = ('%s (%d tokens)'):format(text.line(text.goal(goal), 200), goal.tokensUsed)
  vim.ui.select(choices, {
    prompt = prompt,
    kind = 'standfast.goal',
    format_item = function(choice)
      return choice[1]
    end,
  }, function(choice)
    if choice then
      choice[2]()
    end
  end)
end

--- Set the goal of a session; without an objective: ask for one, or what shall become of the goal that there is.
---@param connection standfast.Connection
---@param session_id string
---@param objective? string
function M.edit(connection, session_id, objective)
  client.request(connection, 'goal/get', { sessionId = session_id }, function(err, result)
    local goal = result and result.goal
    if err then
      client.show_error(err)
    elseif objective and goal then
      ask(connection, session_id, 'update', { objective = objective, status = 'active' })
    elseif objective then
      ask(connection, session_id, 'set', { objective = objective })
    elseif goal then
      act(connection, session_id, goal)
    else
      ask_objective('', function(given)
        ask(connection, session_id, 'set', { objective = given })
      end)
    end
  end)
end

return M
