"""lsprotocol takes a code action that holds a command for a bare `Command`, so that its kind, edit and diagnostics are lost."""

from lsprotocol import converters, types
from talk import verdict

action = types.CodeAction("Fix", kind=types.CodeActionKind.QuickFix, command=types.Command("Fix", "do.it"))
response = types.CodeActionResponse(id=1, result=[action])
converter = converters.get_converter()
(back,) = converter.structure(converter.unstructure(response), types.CodeActionResponse).result or ()
verdict("a code action with a command comes back as a Command", isinstance(back, types.Command))
