"""The docstrings of public names as Markdown: signature, text, arguments, and the members of a class."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel

from docs.site.markdown import escaped, table
from dragoman import Config
from dragoman.options import Options, ShortSignature, without_options

SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):\n((?:    .*\n|\n)*)", re.MULTILINE)
ENTRY = re.compile(r"^    (\S[^:\n]*): (.*(?:\n {5,}\S.*)*)", re.MULTILINE)


def described(name: str, public: Any) -> str:
    """Return a public name with its signature, its docstring, and its methods if it is a class with any."""
    parts = [_call(f"dragoman.{name}", _parameters(public)), text_of(public)]
    for member, method in _members(public):
        parts.append(f"### {name}.{member}")
        if isinstance(method, property):
            parts.append(text_of(method))
        else:
            parts += [_call(f"{name}.{member}", _parameters(method)), text_of(method)]
    return "\n\n".join(part for part in parts if part)


def text_of(documented: Any) -> str:
    """Return a docstring as Markdown, its sections as tables and lists, without that of the options."""
    text = without_options(inspect.getdoc(documented) or "") + "\n"
    parts, end = [], 0
    for section in SECTION.finditer(text):
        parts.append(_plain(text[end : section.start()]))
        parts.append(_section(section[1], section[2]))
        end = section.end()
    parts.append(_plain(text[end:]))
    return "\n\n".join(part for part in parts if part)


def _plain(text: str) -> str:
    """Return the text with code as Markdown has it, all else escaped; addresses become links."""
    pieces = re.split(r"``([^`]+)``", text.strip())
    return "".join(f"`{piece}`" if i % 2 else escaped(piece) for i, piece in enumerate(pieces))


def _section(title: str, body: str) -> str:
    """Return a section of a docstring: a table of the arguments or attributes, a list of the errors, or a paragraph."""
    entries = [(names, " ".join(_plain(meaning).split())) for names, meaning in ENTRY.findall(body)]
    if title in ("Args", "Attributes"):
        rows = [(", ".join(f"`{name.strip()}`" for name in names.split(",")), meaning) for names, meaning in entries]
        return table("argument|meaning" if title == "Args" else "attribute|meaning", rows)
    if title == "Raises":
        return "**Raises**\n\n" + "\n".join(f"- `{names}`: {meaning}" for names, meaning in entries)
    return f"**{title}** " + _plain(" ".join(body.split()))


def _call(name: str, parameters: str | None) -> str:
    """Return a call as a block of code; nothing for what is not called."""
    return "" if parameters is None else f"```text\n{name}({parameters})\n```"


def _parameters(called: Callable[..., Any]) -> str | None:
    """Return the parameters of a call without their types, and without declared options; None for an error."""
    if inspect.isclass(called) and issubclass(called, Exception):
        return None
    if inspect.isclass(called) and issubclass(called, Options | BaseModel):  # their fields are a table or a page
        return "..."
    signature = inspect.signature(called)
    if isinstance(signature, ShortSignature):
        return re.sub(r"^self(, )?", "", str(signature)[1:-1])
    kept = []
    for parameter in signature.parameters.values():
        if parameter.name not in ("self", "cls"):
            default = parameter.default if " at 0x" not in repr(parameter.default) else ...
            kept.append(parameter.replace(annotation=inspect.Parameter.empty, default=default))
    return str(inspect.Signature(kept))[1:-1].replace("=Ellipsis", "=...")


def _members(public: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and function of the public methods that a class itself has, in the order of its code."""
    if not inspect.isclass(public) or issubclass(public, Exception | Options):
        return
    only = ("from_yaml", "from_mapping", "to_yaml") if public is Config else None
    if issubclass(public, BaseModel) and only is None:
        return
    for name, member in vars(public).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        is_method = inspect.isfunction(function) or isinstance(function, property)
        if is_method and not name.startswith("_") and (only is None or name in only) and function.__doc__:
            yield name, function
