"""Fill HTML templates; ``base.html`` surrounds every page, and all text put into a page is escaped.

render("table.html", title="...", rows=...)
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
import zlib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from dragoman.files import refuse_others

_PAGE_MARKS = (b'<!doctype html>\n<html lang="', b"content=\"default-src 'none'; ")
"""Bytes at the beginning of every page, and others in its head: by them pages of dragoman are known."""


def render(template: str, **values: Any) -> str:
    """Return a page as HTML.

    Args:
        template: File name of the template in this folder.
        values: Variables of the template. Text is escaped; ``Markup`` is inserted as HTML.
    """
    return _environment().get_template(template).render(values)


def refuse_other_page(path: Path, who: str, title: str) -> None:
    """Check that a page under a name that no user gave replaces no other file than an older page of its kind.

    Args:
        who: Who writes the page, such as "a report".
        title: Text in the head of such pages in every version, such as a part of its ``<title>``.

    Raises:
        ConfigError: It would.
    """
    refuse_others(path, f"{who} would replace this file, which is not its page", *_PAGE_MARKS, title.encode())


def framed(page: str, height: int) -> str:
    """Return a whole page in a frame, to be shown inside another page, such as a notebook.

    Args:
        page: HTML from ``render``; its scripts run, but cannot see the page around the frame.
        height: Height in pixels.
    """
    style = f"width: 100%; height: {height}px; border: 0"
    return f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts allow-downloads" style="{style}"></iframe>'


@functools.cache
def _environment() -> Environment:
    """Return the Jinja environment with the functions and filters that the templates use."""
    environment = Environment(
        loader=PackageLoader("dragoman", "pages"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    environment.globals.update(file=file, checksum=checksum, crc32s=crc32s, zip=zip)
    environment.filters["words"] = words
    return environment


def file(name: str) -> Markup:
    """Return a script or a style sheet of this folder, unescaped."""
    return Markup((resources.files(__package__) / name).read_text(encoding="utf-8"))


def checksum(text: str) -> str:
    """Return the SHA-256 of a script in the form that a content security policy allows scripts by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def crc32s(texts: Mapping[str, str]) -> dict[str, int]:
    """Return the CRC-32 of each text in UTF-8, by its name."""
    return {name: zlib.crc32(text.encode()) for name, text in texts.items()}


def words(text: str) -> Markup:
    """Return text as HTML, escaped, with text in backticks as ``<code>`` and web addresses as links."""
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    address = (
        r"https?://(?:&amp;|[^\s<>()&\"'])*(?:&amp;|[^\s<>().,;&\"'])"  # no quotes: the address goes into an attribute
    )
    return Markup(re.sub(address, lambda match: f'<a href="{match[0]}">{match[0]}</a>', escaped))
