std = "luajit"
read_globals = { "vim" }
globals = { "vim.g", "vim.o", "vim.bo", "vim.wo", "vim.env", "vim.b" }
max_line_length = 120
max_comment_line_length = 140
exclude_files = { "lua/standfast/generated" }
