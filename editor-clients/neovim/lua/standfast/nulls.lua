--- JSON null. Neovim 0.11 leaves such fields out of objects, 0.12 has `vim.NIL` there; we want them left out. Pure.

local M = {}

--- The value without fields that are null. Changes it in place.
---@generic T
---@param value T
---@return T
function M.drop(value)
  if type(value) == 'table' then
    for key, each in pairs(value) do
      if each == vim.NIL then
        value[key] = nil
      else
        M.drop(each)
      end
    end
  end
  return value
end

return M
