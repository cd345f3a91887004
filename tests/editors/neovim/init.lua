-- The configuration of a person who has installed the plugin as README says, and nothing else.
vim.opt.runtimepath:prepend(vim.env.STANDFAST_PLUGIN)
vim.g.standfast = vim.json.decode(vim.env.STANDFAST_SETTINGS)
vim.opt.swapfile = false
vim.opt.shortmess:append('I')
vim.lsp.enable('standfast')
