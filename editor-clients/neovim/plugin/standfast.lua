-- The guard and the command; everything else is loaded when it is first used.
if vim.g.loaded_standfast then
  return
end
vim.g.loaded_standfast = true

vim.api.nvim_create_user_command('Standfast', function(command)
  require('standfast.commands').run(command)
end, {
  nargs = '*',
  bang = true,
  desc = 'Standfast: sessions, runs and what needs you',
  complete = function(...)
    return require('standfast.commands').complete(...)
  end,
})
