--- Streamed text joined without doubling. Pure.
--- The same words come twice: at once as a delta, later in a stored event; `offset` (UTF-16 units) says where they belong.

local text = require('standfast.text')

local M = {}

---@class standfast.Stream
---@field text string what is shown
---@field length integer of `text`, in UTF-16 units
---@field stored integer how much of it is in the history for good, in UTF-16 units
---@field waiting { offset: integer, text: string }[] what came before its place was reached

---@return standfast.Stream
function M.new()
  return { text = '', length = 0, stored = 0, waiting = {} }
end

---@return boolean grown
local function put(stream, offset, piece)
  local past = stream.length - offset
  if past < 0 then
    return false
  end
  local length = text.len16(piece)
  if past >= length then
    return false
  end
  stream.text = stream.text .. text.skip16(piece, past)
  stream.length = offset + length
  return true
end

--- Put a piece where it belongs. A piece beyond a gap waits for what is missing.
---@param stream standfast.Stream
---@param offset integer
---@param piece string
---@param stored? boolean it comes from a stored event
---@return boolean grown
function M.add(stream, offset, piece, stored)
  if stored then
    stream.stored = math.max(stream.stored, offset + text.len16(piece))
  end
  if offset > stream.length then
    stream.waiting[#stream.waiting + 1] = { offset = offset, text = piece }
    return false
  end
  local grown = put(stream, offset, piece)
  table.sort(stream.waiting, function(one, other)
    return one.offset < other.offset
  end)
  while stream.waiting[1] and stream.waiting[1].offset <= stream.length do
    local next = table.remove(stream.waiting, 1)
    grown = put(stream, next.offset, next.text) or grown
  end
  return grown
end

--- After a lost connection only what is stored is sure: forget the rest, it comes again or it never was.
---@param stream standfast.Stream
---@return boolean changed
function M.rewind(stream)
  stream.waiting = {}
  if stream.length == stream.stored then
    return false
  end
  stream.text = stream.text:sub(1, vim.str_byteindex(stream.text, 'utf-16', stream.stored, false))
  stream.length = stream.stored
  return true
end

return M
