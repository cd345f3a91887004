-- The pure parts, in Neovim's own Lua: `nvim -l units.lua`. Prints one line a failed check; exit code 1 if any failed.

vim.opt.runtimepath:prepend(vim.env.STANDFAST_PLUGIN)

local failed = 0

local function equal(wanted, got, what)
  if not vim.deep_equal(wanted, got) then
    failed = failed + 1
    io.stderr:write(('%s: wanted %s, got %s\n'):format(what, vim.inspect(wanted), vim.inspect(got)))
  end
end

local config = require('standfast.config')
local join = require('standfast.join')
local notice = require('standfast.notice')
local pick = require('standfast.pick')
local render = require('standfast.render')
local scroll = require('standfast.scroll')
local state = require('standfast.state')
local text = require('standfast.text')

-- text: what acts or hides becomes a word (ATK-43, ATK-45) --------------------------------------------------------------

for given, wanted in pairs({
  ['plain\ttext\nnext'] = 'plain\ttext\nnext',
  ['red \27[31m'] = 'red ^[[31m',
  ['clip \27]52;c;aGk=\7'] = 'clip ^[]52;c;aGk=^G',
  ['a\0b\127'] = 'a^@b^?',
  ['c1 \194\155 31m'] = 'c1 <U+009B> 31m',
  ['over \226\128\174gnp.exe'] = 'over <U+202E>gnp.exe',
  ['isolate \226\129\166x\226\129\169'] = 'isolate <U+2066>x<U+2069>',
  ['zero\226\128\139width'] = 'zero<U+200B>width',
  ['join\226\128\141er'] = 'join<U+200D>er',
  ['\239\187\191bom'] = '<U+FEFF>bom',
  ['tag \243\160\129\129'] = 'tag <U+E0041>',
  ['soft\194\173hyphen'] = 'soft<U+00AD>hyphen',
  ['crlf\r\nlf'] = 'crlf\nlf',
  ['cr\ronly'] = 'cr^Monly',
  ['👨‍👩‍👧 äöü 漢字'] = '👨‍👩‍👧 äöü 漢字',
}) do
  equal(wanted, text.visible(given), 'visible ' .. vim.inspect(given))
end
equal('one two', text.line(' one\n\ttwo '), 'line')
equal('漢字漢…', text.line('漢字漢字漢字', 7), 'line counts columns')

-- join: the same words twice, gaps, UTF-16 ------------------------------------------------------------------------------

local function joined(pieces)
  local stream = join.new()
  for _, piece in ipairs(pieces) do
    join.add(stream, piece[1], piece[2], piece[3])
  end
  return stream
end
equal('a😋bc', joined({ { 0, 'a😋b' }, { 3, 'bc' } }).text, 'overlap counts UTF-16 units')
equal('one two', joined({ { 0, 'one ' }, { 0, 'one ', true }, { 4, 'two' }, { 4, 'two', true } }).text, 'no doubling')
equal('abcdef', joined({ { 0, 'ab' }, { 4, 'ef' }, { 2, 'cd' } }).text, 'a gap waits')
local stream = joined({ { 0, 'ä😋', true }, { 3, 'lost' } })
equal(true, join.rewind(stream), 'rewind')
equal({ 'ä😋', 3 }, { stream.text, stream.length }, 'rewound to what is stored')
-- Any split of a text, in any order of arrival, joins to that text.
local whole = 'Zwölf 😋 Boxkämpfer 漢字 👍🏽 jagen.'
math.randomseed(7)
for _ = 1, 200 do
  local pieces, at = {}, 0
  while at < text.len16(whole) do
    local rest = text.skip16(whole, at)
    local piece = vim.fn.strcharpart(rest, 0, math.random(1, 5))
    pieces[#pieces + 1] = { at, piece, math.random() < 0.5 }
    pieces[#pieces + 1] = { at, piece, true }
    at = at + text.len16(piece)
  end
  for index = #pieces, 2, -1 do
    local other = math.random(index)
    pieces[index], pieces[other] = pieces[other], pieces[index]
  end
  equal(whole, joined(pieces).text, 'shuffled pieces')
end

equal(
  { a = 1, list = { { c = false } } },
  require('standfast.nulls').drop({ a = 1, b = vim.NIL, list = { { c = false, d = vim.NIL } } }),
  'null is left out'
)

-- state: an event once, in order ----------------------------------------------------------------------------------------

local seq = 0
local function event(kind, fields)
  seq = seq + 1
  return vim.tbl_extend('force', { seq = seq, atMs = seq, type = kind, hash = 'h' .. seq, runId = 'r1' }, fields or {})
end
local history = {
  event('session_created', { workspaceUri = 'file:///w' }),
  event('run_started', {}),
  event('user_message', { messageId = 'm1', content = { { kind = 'text', text = 'Hello' } } }),
  event('model_request', { attempt = 1, model = 'x' }),
  event('assistant_chunk', { attempt = 1, offset = 0, text = 'Broken' }),
  event('model_error', { attempt = 1, reason = 'StreamBroken', retryAfterMs = 2000 }),
  event('model_request', { attempt = 2, model = 'x' }),
  event('assistant_chunk', { attempt = 2, offset = 0, text = 'I look' }),
  event('assistant_message', { blocks = { { type = 'text', text = 'I look.' } }, stopReason = 'tool_use' }),
  event('tool_call', { callId = 'c1', tool = 'run_command', args = { command = 'make' } }),
  event('tool_started', { callId = 'c1', intents = {} }),
  event('tool_output', { callId = 'c1', offset = 0, text = 'out' }),
  event('brand_new_type', { anything = 1 }),
  event('tool_recovery', { callId = 'c1', status = 'uncertain', targets = {}, evidence = '' }),
  event('tool_recovery', { callId = 'c1', status = 'unknown', targets = { { command = 'make', verdict = 'unknown' } } }),
  event('run_finished', { status = 'interrupted', usage = { inputTokens = 3, outputTokens = 4 } }),
}
local view = state.new('s1')
for _, each in ipairs(history) do
  equal('applied', state.apply(view, each), 'apply ' .. each.type)
  equal('old', state.apply(view, each), 'apply again ' .. each.type)
end
equal('gap', state.apply(view, { seq = seq + 2, type = 'user_message' }), 'gap')
local kinds = vim.tbl_map(function(item)
  return item.kind
end, view.items)
equal({ 'user', 'assistant', 'assistant', 'call', 'note' }, kinds, 'items')
equal({ 'uncertain', 'unknown' }, { view.calls.c1.status, view.calls.c1.verdict }, 'the call')
equal({ 'Broken', 'I look.' }, { view.items[2].stream.text, view.items[3].stream.text }, 'attempts are kept apart')
equal({ input = 3, output = 4 }, view.tokens, 'tokens')

-- Any cut of the history into an older and a newer page folds to the same.
local function shape(of)
  return vim.tbl_map(function(item)
    return { item.kind, item.id, render.block(item).lines }
  end, of.items)
end
for cut = 1, #history - 1 do
  local newer = state.new('s1')
  local page = vim.list_slice(history, cut + 1)
  newer = state.attached(newer, { events = page, headSeq = seq, hasMore = true, session = {}, queue = {}, permissions = {} })
  equal(true, newer.hasOlder, 'has older')
  newer = state.older(newer, vim.list_slice(history, 1, cut), false)
  equal(shape(view), shape(newer), 'cut at ' .. cut)
end

-- A replaced history throws the held copy away.
local replaced = state.attached(view, {
  events = vim.list_slice(history, 1, 3),
  headSeq = 3,
  damage = { atSeq = 4, reason = 'cut' },
  queue = {},
})
equal(3, replaced.headSeq, 'damage')

-- The queue.
local queue = state.new('s2')
seq = 0
for _, each in ipairs({
  event('message_queued', { messageId = 'a', content = { { text = 'A' } }, runId = 'r' }),
  event('message_queued', { messageId = 'b', content = { { text = 'B' } }, runId = 'r' }),
  event('message_queued', { messageId = 'c', content = { { text = 'C' } }, runId = 'r' }),
  event('message_edited', { messageId = 'c', text = 'CC', position = 0 }),
  event('message_dequeued', { messageId = 'a', reason = 'removed' }),
}) do
  state.apply(queue, each)
end
equal({ 'CC0', 'B1' }, vim.tbl_map(function(item)
  return item.text .. item.position
end, queue.queue), 'the queue')

-- render and scroll: the smallest change --------------------------------------------------------------------------------

local bufnr = vim.api.nvim_create_buf(false, true)
local keeper = scroll.new(bufnr)
local writes = 0
vim.api.nvim_buf_attach(bufnr, false, {
  on_lines = function(_, _, _, first, last)
    writes = writes + last - first
  end,
})
local shown = state.new('s3')
seq = 0
local function flat(of)
  local lines = {}
  for _, item in ipairs(render.items(of)) do
    vim.list_extend(lines, render.block(item).lines)
  end
  return lines
end
for _, each in ipairs(history) do
  local copy = vim.tbl_extend('force', each, { seq = shown.headSeq + 1 })
  state.apply(shown, copy)
  scroll.show(keeper, render.items(shown))
  local lines = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
  table.remove(lines) -- the empty line that every buffer has
  equal(flat(shown), lines, 'the buffer after ' .. each.type)
end
local function closed()
  local lines = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
  return vim.list_contains(lines, '  ▸ arguments and output, 3 lines (za opens)'), vim.list_contains(lines, '  │ command: make')
end
equal({ true, false }, { closed() }, 'folded at first')
scroll.set_open(keeper, { view.calls.c1.id }, true)
scroll.show(keeper, render.items(shown))
equal({ false, true }, { closed() }, 'opened')
state.apply(shown, { seq = shown.headSeq + 1, atMs = 1, type = 'model_request', attempt = 1, runId = 'r9' })
scroll.show(keeper, render.items(shown))
writes = 0
for at = 0, 199 do
  state.delta(shown, { runId = 'r9', attempt = 1, offset = at * 5, text = 'word ' })
  scroll.show(keeper, render.items(shown))
end
equal(200, writes, 'streaming replaces one line at a time')

-- lists, notices and settings -------------------------------------------------------------------------------------------

local session = { title = 'Fix\27[2J it', workspaceState = 'moved', updatedAtMs = 0, lastRun = { status = 'failed' } }
equal('Fix^[[2J it · failed · folder moved · 2 h', pick.label(session, 7200000), 'a session in the list')
equal(
  'a run in “Fix” was interrupted (:Standfast resume, review). a.py: partial.',
  notice.sentence({ title = 'Fix' }, { calls = { { tool = 'x', targets = { { uri = 'file:///w/a.py', verdict = 'partial' } } } } }),
  'the notice'
)
local told
vim.notify = function(message)
  told = message
end
require('standfast.say').error('there is no key. Run `standfast login`, then `resume`. A lone ` stays.')
equal('Standfast: there is no key. Run “standfast login”, then “resume”. A lone ` stays.', told, 'a message is plain text')
vim.g.standfast = { cmd = 'standfast', chat = { position = 'up', size = 30 }, colour = 'red', ascii = true }
local settings, problems = config.read()
table.sort(problems)
equal({ 'right', 30, true, 'lsp' }, { settings.chat.position, settings.chat.size, settings.ascii, settings.cmd[2] }, 'settings')
equal({
  'vim.g.standfast.chat.position must be one of: right, left, bottom, tab',
  'vim.g.standfast.cmd must be a list of strings, such as { "standfast", "lsp" }',
  'vim.g.standfast.colour is no setting of Standfast',
}, problems, 'what is wrong with them')
equal({ 'queue' }, require('standfast.commands').complete('q', 'Standfast q'), 'completion')
equal({ 'ask', 'auto' }, require('standfast.commands').complete('a', 'Standfast mode a'), 'completion of an argument')

os.exit(failed == 0 and 0 or 1)
