"""What stands beneath the fields of a payload in its source.

Read here and not by pydantic's `use_attribute_docstrings`: that reads all sources again whenever a daemon starts.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from itertools import pairwise

from pydantic import BaseModel


def field_docs(base: type[BaseModel]) -> dict[str, dict[str, str]]:
    """Of each class under `base`: name of the class → name of the field on the wire → text."""
    return {shape.__name__: _of(shape) for shape in _under(base)}


def _under(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for shape in base.__subclasses__():
        yield shape
        yield from _under(shape)


def _of(shape: type[BaseModel]) -> dict[str, str]:
    """Its own fields and those that it inherits."""
    said: dict[str, str] = {}
    for ancestor in reversed(shape.__mro__):
        if issubclass(ancestor, BaseModel) and ancestor is not BaseModel:
            said |= _in_source(ancestor)
    return {field.alias or name: said[name] for name, field in shape.model_fields.items() if name in said}


def _in_source(shape: type[BaseModel]) -> dict[str, str]:
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(shape))).body
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(text)
        for field, beneath in pairwise(body.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and (text := _text(beneath))
    }


def _text(statement: ast.stmt) -> str:
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
        case _:
            return ""
