-- The server as Neovim's own LSP client wants it: `vim.lsp.enable('standfast')`. Settings: `vim.g.standfast`.
return require('standfast.client').lsp_config()
