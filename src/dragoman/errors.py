"""The errors of dragoman.

    Exception
    └── DragomanError            any error that dragoman raises on purpose
        ├── ConfigError          a setting is unknown, impossible or missing (also a ValueError)
        ├── DataError            a corpus, a line or a tokenizer cannot be used
        ├── BundleError          a trained model or a checkpoint on disk cannot be used
        ├── UnreadableError      a file or folder is there, but cannot be read now
        ├── DecodeError          a translation cannot be made with the given constraints
        └── ServeError           the server cannot do what a request asks for

A message says what is wrong, with the value, the rule and what to do. If a file is at fault it names the file and, if
there is one, the line. The command line prints the message in one line and exits with status 2.
"""

from __future__ import annotations

import codecs
import contextlib
import copyreg
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path


class DragomanError(Exception):
    """Base class of all errors that dragoman raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle an error by its message and attributes: a class may be made from other arguments than its message."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class ConfigError(DragomanError, ValueError):
    """A setting is unknown, impossible or missing."""


class DataError(DragomanError):
    """A corpus, one of its lines or a tokenizer cannot be used."""


class BundleError(DragomanError):
    """A trained model or a checkpoint on disk is missing, damaged or not dragoman's."""


class UnreadableError(DragomanError):
    """A file or folder is there, but cannot be read now: nothing may be written or removed in its place."""


class DecodeError(DragomanError):
    """A translation cannot be made with the given constraints."""


class ServeError(DragomanError):
    """The server cannot do what a request asks for."""


MOST_MESSAGE = 1_000
"""Largest length of the message that is shown, in characters; it may quote what somebody sent."""


def shortened(message: str) -> str:
    """Return a message of at most about ``MOST_MESSAGE`` characters: of a longer one, both ends."""
    if len(message) <= MOST_MESSAGE:
        return message
    half = MOST_MESSAGE // 2
    return f"{message[:half]} ... ({len(message) - 2 * half:,} characters) ... {message[-half:]}"


def listing(names: Iterable[str]) -> str:
    """Return the first three names in words, and the number of the others."""
    first, others = sorted(names)[:3], sorted(names)[3:]
    return ", ".join(first) + (f" and {len(others)} more" if others else "")


def _bytes_of_names(error: UnicodeError) -> tuple[str | bytes, int]:
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.backslashreplace_errors(error)


BYTES_OF_NAMES = "bytes_of_names"
"""Error handler of streams that show names of files, which may not be UTF-8: their bytes are written as they are.

Half of a surrogate pair, which is in no such name, becomes an escape.
"""
codecs.register_error(BYTES_OF_NAMES, _bytes_of_names)


def as_command(*words: object) -> str:
    """Return words as a command that can be pasted: quoted where the shell needs it.

    A ``Path`` that begins with a dash gets ``./`` before it, so that it is no option.
    """
    shown = ((f"{word}", isinstance(word, Path)) for word in words)  # as messages show it, if it was made absolute
    return shlex.join(f"./{text}" if is_path and text.startswith("-") else text for text, is_path in shown)


@contextlib.contextmanager
def parsing(
    name: object, form: str, refusal: type[DragomanError] = DataError, wrong: str = "damaged, or not"
) -> Iterator[None]:
    """Turn whatever a parser of foreign bytes raises in the body into a refusal of one line.

    The body calls a parser that is not ours (zipfile, lxml, NumPy) and nothing else, as our own mistakes would be
    hidden. Errors of dragoman pass.

    Args:
        name: Name of the file.
        form: The form that it should have, such as ``a .docx file``.
    """
    try:
        yield
    except DragomanError:
        raise
    except MemoryError:
        raise refusal(f"{name}: needs more memory than there is; if it should not, copy it again") from None
    except Exception as error:
        reason = " ".join(f"{type(error).__name__} {error}".split())[:120]
        raise refusal(f"{name}: {wrong} {form} ({reason}); copy it again") from None


def not_installed(what: str, *packages: str) -> str:
    """Return the message for missing optional packages, with the one command that installs them."""
    *first, last = packages
    names, verb = (f"{', '.join(first)} and {last}", "are") if first else (last, "is")
    return f"{what} needs {names}, which {verb} not installed: pip install {' '.join(packages)}"
