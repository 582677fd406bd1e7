"""Fill a template: ``base.html`` is around every page, and whatever is put into one is escaped."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape


def render(template: str, **values: Any) -> str:
    """A page as HTML.

    Args:
        template: Its file in this folder.
        values: What it shows. Text is escaped; ``Markup`` is HTML already.
    """
    return _environment().get_template(template).render(values)


def framed(page: str, height: int) -> str:
    """A whole page as HTML that can be part of another, such as a notebook's, with nothing in common but the window.

    Args:
        page: As ``render`` made it; its scripts run, and see nothing of the page around it.
        height: In pixels.
    """
    style = f"width: 100%; height: {height}px; border: 0"
    return f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts allow-downloads" style="{style}"></iframe>'


@functools.cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("dragoman", "pages"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    found.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    found.globals.update(file=file, checksum=checksum, zip=zip)
    found.filters["words"] = words
    return found


def file(name: str) -> Markup:
    """A script or a style of this folder, as it is."""
    return Markup((resources.files(__package__) / name).read_text(encoding="utf-8"))


def checksum(text: str) -> str:
    """By which a content security policy lets a script run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def words(text: str) -> Markup:
    """Text with ``code`` between backticks, and addresses as links; all else escaped."""
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    address = r"https?://(?:&amp;|[^\s<>()&\"'])*(?:&amp;|[^\s<>().,;&\"'])"  # it goes into an attribute
    return Markup(re.sub(address, lambda found: f'<a href="{found[0]}">{found[0]}</a>', escaped))
