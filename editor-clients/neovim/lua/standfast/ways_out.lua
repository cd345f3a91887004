--- Errors that have a way out which only the person can choose: each is offered, none is taken by itself.

local client = require('standfast.client')
local say = require('standfast.say')
local text = require('standfast.text')

local M = {}

local function offer_folder(connection, session_id, err, uri, retry)
  local label = ('Work in %s'):format(text.line(vim.uri_to_fname(uri), 80))
  local options = { prompt = text.line(err.message, 300), kind = 'standfast.rebind' }
  vim.ui.select({ label, 'Not now' }, options, function(choice)
    if choice ~= label then
      return
    end
    client.request(connection, 'session/rebind', { sessionId = session_id, workspaceUri = uri }, function(failure)
      if failure then
        client.show_error(failure)
      else
        retry()
      end
    end)
  end)
end

local offers = {}

function offers.WorkspaceMoved(connection, session_id, err, retry)
  local uri = err.data and err.data.candidateUri or vim.uri_from_fname(connection.root)
  offer_folder(connection, session_id, err, uri, retry)
end

function offers.WorkspaceReplaced(connection, session_id, err, retry)
  offer_folder(connection, session_id, err, vim.uri_from_fname(connection.root), retry)
end

function offers.RunKeepsCrashing(_, _, err, retry)
  vim.ui.select({ 'Go on all the same', 'Not now' }, { prompt = text.line(err.message, 300) }, function(choice)
    if choice == 'Go on all the same' then
      retry({ confirm = true })
    end
  end)
end

local function offer_login(_, _, err, retry)
  say.warn(text.line(err.message, 300))
  require('standfast').login(retry)
end

offers.KeyMissing = offer_login
offers.KeyRefused = offer_login

--- Tell of an error, and offer what can be done about it. `retry(more?)` does again what failed.
---@param connection standfast.Connection
---@param session_id string
---@param err standfast.Error
---@param retry fun(more?: table)
function M.offer(connection, session_id, err, retry)
  local offer = offers[err.reason]
  if offer then
    offer(connection, session_id, err, retry)
  else
    client.show_error(err)
  end
end

return M
