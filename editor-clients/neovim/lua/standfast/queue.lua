--- The messages that wait: edit, move, take away, let a held queue go on.

local client = require('standfast.client')
local say = require('standfast.say')
local text = require('standfast.text')

local M = {}

local function ask(connection, method, params)
  client.request(connection, 'queue/' .. method, params)
end

local function edit(connection, session_id, item)
  vim.ui.input({ prompt = 'Message: ', default = item.text:gsub('\n', ' ') }, function(input)
    if input and vim.trim(input) ~= '' then
      ask(connection, 'edit', { sessionId = session_id, messageId = item.messageId, text = input })
    end
  end)
end

local function act(connection, session_id, item, count)
  local function move(label, position)
    return {
      label = label,
      go = function()
        ask(connection, 'move', { sessionId = session_id, messageId = item.messageId, position = position })
      end,
    }
  end
  local choices = {
    {
      label = 'Edit',
      go = function()
        edit(connection, session_id, item)
      end,
    },
    {
      label = 'Remove',
      go = function()
        ask(connection, 'remove', { sessionId = session_id, messageId = item.messageId })
      end,
    },
  }
  if item.position > 0 then
    table.insert(choices, move('Send first', 0))
    table.insert(choices, move('One place earlier', item.position - 1))
  end
  if item.position < count - 1 then
    table.insert(choices, move('One place later', item.position + 1))
  end
  vim.ui.select(choices, {
    prompt = text.line(item.text, 80),
    kind = 'standfast.queue',
    format_item = function(choice)
      return choice.label
    end,
  }, function(choice)
    if choice then
      choice.go()
    end
  end)
end

--- Show the queue of a session and let the person change it.
---@param connection standfast.Connection
---@param session_id string
function M.open(connection, session_id)
  client.request(connection, 'queue/list', { sessionId = session_id }, function(err, result)
    if err then
      client.show_error(err)
      return
    elseif #result.queue == 0 then
      say.info('no message waits.')
      return
    end
    local choices = vim.list_extend(result.queueHeld and { { go_on = true } } or {}, result.queue)
    vim.ui.select(choices, {
      prompt = result.queueHeld and 'Waiting messages (held)' or 'Waiting messages',
      kind = 'standfast.queue',
      format_item = function(item)
        return item.go_on and 'Let them go on' or text.line(item.text, 80)
      end,
    }, function(item)
      if item and item.go_on then
        ask(connection, 'resume', { sessionId = session_id })
      elseif item then
        act(connection, session_id, item, #result.queue)
      end
    end)
  end)
end

return M
