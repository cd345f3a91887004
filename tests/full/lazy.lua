--- An init.lua with the plugin spec of a README. `SPEC`: its text; `LAZY_NVIM`: a checkout of lazy.nvim, if there is one.
--- Without one, what lazy.nvim 11 does with a spec of this kind (its lua/lazy/core/loader.lua, lua/lazy/health.lua) is done here.

local KEYS = vim.split(
  'branch build cmd commit cond config deactivate dependencies dev dir enabled event ft import init keys lazy main module'
    .. ' name optional opts pin priority submodules tag url version',
  ' '
)
local spec = assert(loadstring('return ' .. vim.env.SPEC))()
vim.g.mapleader = ' '

if vim.env.LAZY_NVIM then
  vim.opt.rtp:prepend(vim.env.LAZY_NVIM)
  require('lazy').setup({ spec = { spec }, install = { missing = false }, rocks = { enabled = false } })
  local plugin = require('lazy.core.config').plugins[spec.name]
  assert(plugin and plugin._.loaded, 'lazy.nvim did not load it')
  return
end

for key in pairs(spec) do
  assert(vim.tbl_contains(KEYS, key), 'lazy.nvim knows no ' .. key)
end
assert(type(spec.name) == 'string', 'else it is shown by the name of its folder')
assert(type(spec.dir) == 'string' and type(spec.config) == 'function' and spec.opts == nil)
local dir = vim.fs.normalize(spec.dir)
assert(vim.fn.isdirectory(dir) == 1, 'no folder: ' .. dir)
vim.opt.loadplugins = false
vim.opt.rtp:append(dir)
for _, file in ipairs(vim.fn.globpath(dir, 'plugin/**/*.lua', false, true)) do
  vim.cmd.source(file)
end
spec.config(spec, {})
