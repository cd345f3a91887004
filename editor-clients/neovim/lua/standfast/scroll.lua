--- The chat's buffer kept equal to a list of items, by the smallest change: nothing flickers, the cursor stays where it is.

local config = require('standfast.config')
local render = require('standfast.render')

local M = {}

local marks = vim.api.nvim_create_namespace('standfast_chat')

---@class standfast.Scroll
---@field bufnr integer
---@field shown { id: string, rev: any, height: integer, item: table }[] in the order of the buffer
---@field open table<string, true> items whose folded lines are shown

---@param bufnr integer
---@return standfast.Scroll
function M.new(bufnr)
  return { bufnr = bufnr, shown = {}, open = {} }
end

local function height_of(shown, from, to)
  local height = 0
  for at = from, to do
    height = height + shown[at].height
  end
  return height
end

local function same(one, other)
  return one ~= nil and other ~= nil and one.id == other.id and one.rev == other.rev
end

--- Draw items `from`..`to`: lines, marks with rows from 0, and the heights.
local function draw(scroll, items, from, to)
  local ascii = config.get().ascii
  local lines, drawn_marks, shown = {}, {}, {}
  for at = from, to do
    local item = items[at]
    local block = render.block(item, ascii, scroll.open[item.id])
    for _, mark in ipairs(block.marks) do
      drawn_marks[#drawn_marks + 1] = { row = #lines + mark.row, from = mark.from, to = mark.to, group = mark.group }
    end
    vim.list_extend(lines, block.lines)
    shown[#shown + 1] = { id = item.id, rev = item.rev, height = #block.lines, item = item }
  end
  return lines, drawn_marks, shown
end

--- Replace `count` values of a list from index `at` on.
local function splice(list, at, count, values)
  local tail = vim.list_slice(list, at + count)
  for index = #list, at, -1 do
    list[index] = nil
  end
  vim.list_extend(list, values)
  vim.list_extend(list, tail)
end

--- Windows that stand at the end go along with it; the others do not move.
local function at_end(bufnr)
  local last = vim.api.nvim_buf_line_count(bufnr)
  return vim.tbl_filter(function(window)
    return vim.api.nvim_win_get_cursor(window)[1] >= last
  end, vim.fn.win_findbuf(bufnr))
end

--- Write lines `from`..`to` (rows, end exclusive) of the buffer, leaving out what is equal at both ends.
local function write(scroll, from, to, lines, drawn_marks)
  local old = vim.api.nvim_buf_get_lines(scroll.bufnr, from, to, false)
  local head, tail = 0, 0
  while head < #lines and head < #old and lines[head + 1] == old[head + 1] do
    head = head + 1
  end
  while tail < #lines - head and tail < #old - head and lines[#lines - tail] == old[#old - tail] do
    tail = tail + 1
  end
  if head < #lines or head < #old then
    local middle = vim.list_slice(lines, head + 1, #lines - tail)
    vim.bo[scroll.bufnr].modifiable = true
    vim.api.nvim_buf_set_lines(scroll.bufnr, from + head, to - tail, false, middle)
    vim.bo[scroll.bufnr].modifiable = false
    vim.bo[scroll.bufnr].modified = false
  end
  vim.api.nvim_buf_clear_namespace(scroll.bufnr, marks, from, from + #lines)
  for _, mark in ipairs(drawn_marks) do
    vim.api.nvim_buf_set_extmark(scroll.bufnr, marks, from + mark.row, mark.from, {
      end_col = mark.to,
      hl_group = mark.group,
      priority = 110,
    })
  end
end

--- Make the buffer show these items.
---@param scroll standfast.Scroll
---@param items table[] from `render.items`
function M.show(scroll, items)
  local shown = scroll.shown
  local head, tail = 0, 0
  while same(shown[head + 1], items[head + 1]) do
    head = head + 1
  end
  while tail < #items - head and tail < #shown - head and same(shown[#shown - tail], items[#items - tail]) do
    tail = tail + 1
  end
  if head == #shown and head == #items then
    return
  end
  local following = at_end(scroll.bufnr)
  local from = height_of(shown, 1, head)
  local to = from + height_of(shown, head + 1, #shown - tail)
  local lines, drawn_marks, drawn = draw(scroll, items, head + 1, #items - tail)
  write(scroll, from, to, lines, drawn_marks)
  splice(shown, head + 1, #shown - tail - head, drawn)
  local last = vim.api.nvim_buf_line_count(scroll.bufnr)
  for _, window in ipairs(following) do
    vim.api.nvim_win_set_cursor(window, { last, 0 })
  end
end

--- Show or hide what is folded away of these items; `show` must follow.
---@param scroll standfast.Scroll
---@param ids string[]
---@param open boolean
function M.set_open(scroll, ids, open)
  local wanted = {}
  for _, id in ipairs(ids) do
    scroll.open[id], wanted[id] = open or nil, true
  end
  for _, block in ipairs(scroll.shown) do
    block.rev = not wanted[block.id] and block.rev or nil
  end
end

--- The item on a line, and the line on which it begins.
---@param scroll standfast.Scroll
---@param line integer from 1
---@return table? item
---@return integer? first
function M.item_at(scroll, line)
  local first = 1
  for _, block in ipairs(scroll.shown) do
    if line < first + block.height then
      return block.item, first
    end
    first = first + block.height
  end
end

--- The line on which the next (`step` 1) or previous (-1) item begins.
---@param scroll standfast.Scroll
---@param line integer
---@param step 1|-1
---@return integer
function M.neighbour(scroll, line, step)
  local first, before = 1, 1
  for _, block in ipairs(scroll.shown) do
    if step == 1 and first > line then
      return first
    elseif step == -1 and first >= line then
      return before
    end
    if block.height > 0 then
      before = first
    end
    first = first + block.height
  end
  return step == 1 and line or before
end

return M
