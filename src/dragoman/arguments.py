"""Checks the arguments of public functions against the types that they declare.

    @checked
    def find(self, text: str) -> list[Match]: ...

    glossary.find(None)    # DataError: text must be a text, got NoneType

An error of Python deep in a library says nothing to a user. A generator or an array where a list is declared becomes a
list. Nothing here imports torch or NumPy.
"""

from __future__ import annotations

import functools
import inspect
import io
import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar, Union, get_args, get_origin

from dragoman.errors import ConfigError, DataError, DragomanError

F = TypeVar("F", bound=Callable[..., Any])

TEXTS = ("text", "texts", "sources", "targets", "target", "hyps", "refs")
"""Names of parameters that hold text: it is data, so a wrong one is a ``DataError``."""

FILES_OR_TEXTS = ("src", "tgt", "ref", "run", "a", "b", "valid_src", "valid_tgt")
"""Names of parameters that hold the path of a file or a list of texts."""

_LISTS = (Sequence, Iterable, list)
_WORDS = {
    bool: "true or false", int: "a whole number", float: "a number", str: "a text", Path: "a path",
    type(None): "None", BinaryIO: "a binary stream",
}  # fmt: skip


def checked(function: F) -> F:
    """Return a function that refuses arguments that do not have their declared types, with one sentence.

    Raises:
        DataError: A text is something else.
        ConfigError: Another argument is something else.
    """
    signature = inspect.signature(function)
    hints: dict[str, Any] = {}

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not hints:
            hints.update(typing.get_type_hints(function))
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # Python itself names the argument that is missing or unknown
            return function(*args, **kwargs)
        owner = args[0] if args else None
        for name, value in bound.arguments.items():
            kind = signature.parameters[name].kind
            if name in hints and kind is inspect.Parameter.VAR_POSITIONAL:
                bound.arguments[name] = tuple(_checked(name, entry, hints[name], owner) for entry in value)
            elif name in hints and kind is not inspect.Parameter.VAR_KEYWORD:
                bound.arguments[name] = _checked(name, value, hints[name], owner)
        return function(*bound.args, **bound.kwargs)

    return typing.cast(F, call)


def at_least_1(name: str, value: int) -> None:
    """Refuse a number of things below 1.

    Raises:
        ConfigError: It is below 1.
    """
    if value < 1:
        raise ConfigError(f"{name} must be 1 or more, got {value}")


def _checked(name: str, value: Any, hint: Any, owner: Any) -> Any:
    """Return an argument, a generator or array as a list; refuse one that does not fit."""
    options = _options(hint)
    lists = [option for option in options if get_origin(option) in _LISTS]
    if any(_fits(value, option, owner) for option in options if option not in lists):
        return value
    if lists and columns_of(value):
        value = only_column(name, value)
    # An iterator, also one within a list, gives its entries once: they would be gone after the check.
    if lists and is_listable(value) and not isinstance(value, Sequence):
        value = as_list(value)
    entries = value
    if lists and is_listable(value) and any(is_listable(entry) and not isinstance(entry, Sequence) for entry in value):
        entries = [as_list(entry) if is_listable(entry) else entry for entry in value]
    if any(_fits(entries, option, owner) for option in lists):
        return entries
    if name in (*TEXTS, *FILES_OR_TEXTS) and lists and is_listable(value):
        refuse_entries(name, value, str | os.PathLike | Sequence if name in FILES_OR_TEXTS else str)
    raise _refusal(name, value, hint)


def columns_of(value: Any) -> dict[str, Any]:
    """Return the labels of the columns of a table of pandas, Polars, Arrow or datasets, by their names; else none.

    pandas numbers columns without headings: the name of 0 is "0".
    """
    labels = getattr(value, "column_names", getattr(value, "columns", None))
    is_table = hasattr(value, "__getitem__") and isinstance(labels, Iterable) and not isinstance(value, type)
    return {str(label): label for label in labels} if is_table and labels is not None else {}


def as_list(value: Iterable[Any]) -> list[Any]:
    """Return the entries of an iterator, an array or a column; those of Arrow as Python's own types."""
    return value.to_pylist() if hasattr(value, "to_pylist") else list(value)


def only_column(name: str, table: Any) -> list[Any]:
    """Return the values of the only column of a table.

    Raises:
        DataError: The table has several.
    """
    columns = columns_of(table)
    first = next(iter(columns.values()))
    if len(columns) > 1:
        raise DataError(
            f"{name} is a table with the columns {', '.join(columns)}: give one of them, such as {name}[{first!r}]"
        )
    return as_list(table[first])


def refuse_entries(name: str, entries: Iterable[Any], kind: Any = str) -> None:
    """Refuse the first entry of a list that is no text.

    Args:
        kind: Types that an entry may have.

    Raises:
        DataError: An entry has another type; the message has its number, and says if a value is missing.
    """
    for number, entry in enumerate(entries, 1):
        if isinstance(entry, kind) and not isinstance(entry, bytes | bytearray):
            continue
        kind_name = type(entry).__name__
        is_nan = kind_name.startswith("float") and entry != entry
        is_missing = is_nan or kind_name in ("NoneType", "NAType", "NaTType")
        got = f"{entry}, a missing value: drop the row, or put an empty text" if is_missing else kind_name
        raise DataError(f"{name}: number {number:,} must be a text (str), got {got}")


def is_listable(value: Any) -> bool:
    """True for a list and the like, a generator and an array; not for text, mappings and sets, which have no order."""
    if isinstance(value, str | bytes | bytearray | Mapping | set | frozenset | type) or not isinstance(value, Iterable):
        return False
    return getattr(value, "ndim", 1) > 0


def _refusal(name: str, value: Any, hint: Any) -> DragomanError:
    if name in TEXTS:
        return DataError(f"{name} must be {in_words(hint)}, got {type(value).__name__}")
    shown = " ".join(repr(value).split())
    return ConfigError(f"{name} must be {in_words(hint)}, got {shown if len(shown) <= 60 else shown[:57] + '...'}")


def _options(hint: Any) -> list[Any]:
    """Return the types of a union, or the only one."""
    if get_origin(hint) is typing.Annotated:
        return _options(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        options = [option for member in get_args(hint) for option in _options(member)]
        return [option for option in options if option is not str or Path not in options]  # a path may be text
    return [hint]


def _fits(value: Any, hint: Any, owner: Any) -> bool:
    """True if a value has a type, which is no union."""
    origin, members = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if origin is Literal:
        return any(value == word and type(value) is type(word) for word in members)
    if origin in _LISTS and members[0] is str:  # perhaps many texts
        return is_listable(value) and all(isinstance(entry, str) for entry in value)
    if origin in _LISTS:
        return is_listable(value) and all(_fits_any(entry, members[0], owner) for entry in value)
    if origin is tuple:
        is_pair = isinstance(value, tuple | list) and (Ellipsis in members or len(value) == len(members))
        return is_pair and all(_fits_any(*pair, owner) for pair in zip(value, members, strict=False))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            _fits_any(key, members[0], owner) and _fits_any(entry, members[1], owner) for key, entry in value.items()
        )
    if origin is not None:
        return callable(value) if origin is Callable else isinstance(value, origin)
    return _is_a(value, hint, owner)


def _is_a(value: Any, hint: Any, owner: Any) -> bool:
    if hint is typing.Self:
        return isinstance(value, owner if isinstance(owner, type) else type(owner))
    if hint is Path or hint is str:
        is_path = hint is Path and isinstance(value, os.PathLike) and "\0" not in str(value)
        return is_path or (isinstance(value, str) and not (hint is Path and "\0" in value))
    if hint in (int, float):
        return isinstance(value, int if hint is int else int | float) and not isinstance(value, bool) and value == value
    if hint is BinaryIO:
        return callable(getattr(value, "readline", None)) and not isinstance(value, io.TextIOBase)
    if hint is Callable or hint is Iterable:
        return callable(value) if hint is Callable else isinstance(value, Iterable)
    if getattr(hint, "_is_protocol", False):
        own = [name for name in dir(hint) if not name.startswith("_")]
        return not isinstance(value, type) and all(hasattr(value, name) for name in own)
    return isinstance(value, hint) if isinstance(hint, type) else True


def _fits_any(value: Any, hint: Any, owner: Any) -> bool:
    return any(_fits(value, option, owner) for option in _options(hint))


def in_words(hint: Any) -> str:
    """Return a type as a reader knows it: ``a text or a list of texts``."""
    options = _options(hint)
    kinds = list(dict.fromkeys(_kind(option) for option in options if option is not type(None)))
    return " or ".join([*kinds, *(["None"] if type(None) in options else [])])


def _kind(hint: Any) -> str:
    origin, members = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " or ".join(map(repr, members))
    if origin in _LISTS:
        entry = in_words(members[0])
        is_plain = entry.startswith("a ") and not entry.startswith("a list") and " or " not in entry
        return f"a list of {entry.removeprefix('a ')}s" if is_plain else f"a list, each {entry}"
    if origin is tuple:
        return f"({', '.join(in_words(member) for member in members)})"
    if origin is Callable or hint is Callable:
        return "a function"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a mapping"
    return _WORDS.get(hint) or f"of the type {getattr(hint, '__name__', hint)}"
