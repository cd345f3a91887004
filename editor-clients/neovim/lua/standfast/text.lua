--- Text at the edge of the screen. Pure: strings in, strings out.
--- What a model or a tool wrote is shown, never obeyed: control, bidi, zero-width and tag characters become visible words.

local M = {}

---@param bytes string one character in UTF-8
local function named(bytes)
  return ('<U+%04X>'):format(vim.fn.char2nr(bytes, true))
end

local function caret(byte)
  local code = byte:byte()
  return code == 127 and '^?' or '^' .. string.char(code + 64)
end

--- Joiners belong to emoji and to scripts that need them; next to ASCII they only hide something.
local function joiners(text)
  return (
    text:gsub('()\226\128([\140\141])', function(at, last)
      local before, after = text:byte(at - 1), text:byte(at + 3)
      if before and after and before >= 128 and after >= 128 then
        return nil
      end
      return named('\226\128' .. last)
    end)
  )
end

--- Make every character visible that would otherwise act or hide. Line feeds and tabs stay; CR LF becomes LF.
---@param text string
---@return string
function M.visible(text)
  text = text:gsub('\r\n', '\n')
  if not text:find('[%z\1-\8\11-\31\127\194\216\225\226\227\239\243]') then
    return text
  end
  text = text:gsub('[%z\1-\8\11-\31\127]', caret)
  text = text:gsub('\194[\128-\159\173]', named) -- C1 controls, soft hyphen
  text = text:gsub('\216\156', named) -- Arabic letter mark
  text = text:gsub('\225\160\142', named) -- Mongolian vowel separator
  text = text:gsub('\226\128[\139\142\143\168-\174]', named) -- zero width space, marks, separators, bidi
  text = text:gsub('\226\129[\160-\175]', named) -- word joiner, isolates, invisible operators
  text = text:gsub('\227\133\164', named) -- Hangul filler
  text = text:gsub('\239\187\191', named) -- byte order mark
  text = text:gsub('\239\191[\185-\187]', named) -- interlinear annotation
  text = text:gsub('\243\160[\128-\135][\128-\191]', named) -- tags and variation selectors beyond the usual
  return joiners(text)
end

--- One line for lists, prompts and the statusline: visible, without line breaks, cut to `width` columns.
---@param text string
---@param width? integer default 100
---@return string
function M.line(text, width)
  width = width or 100
  local line = vim.trim((M.visible(text):gsub('[\n\t]+', ' ')))
  if vim.fn.strdisplaywidth(line) <= width then
    return line
  end
  local kept = vim.fn.strcharpart(line, 0, width - 1)
  while vim.fn.strdisplaywidth(kept) > width - 1 do
    kept = vim.fn.strcharpart(kept, 0, vim.fn.strchars(kept) - 1)
  end
  return kept .. '…'
end

--- The lines of a text, visible.
---@param text string
---@return string[]
function M.lines(text)
  return vim.split(M.visible(text), '\n', { plain = true })
end

--- Length in UTF-16 units, as `offset` on the wire counts.
---@param text string
---@return integer
function M.len16(text)
  return vim.str_utfindex(text, 'utf-16')
end

--- `text` without its first `count` UTF-16 units.
---@param text string
---@param count integer
---@return string
function M.skip16(text, count)
  return text:sub(vim.str_byteindex(text, 'utf-16', count, false) + 1)
end

local GOAL_WORDS = {
  active = 'active',
  paused = 'paused',
  blocked = 'stopped by an error',
  usage_limited = "stopped by the model's service",
  budget_limited = 'at its budget',
  complete = 'reached',
}

--- A goal in a line, or that there is none any more.
---@param goal? standfast.Goal
---@return string
function M.goal(goal)
  if not goal then
    return 'The goal was taken away.'
  end
  return ('Goal (%s): %s'):format(GOAL_WORDS[goal.status] or M.line(goal.status, 40), goal.objective)
end

return M
