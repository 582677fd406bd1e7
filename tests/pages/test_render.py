"""Pages: what is put into a template is text, unless it is marked as HTML."""

from __future__ import annotations

import html
import re
from importlib import resources

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from dragoman.pages.render import checksum, file, framed, render

NASTY = "</style><script>alert(1)</script>"
EMPTY = {"summary": "", "findings": [], "columns": [], "rows": [], "figures": [], "missing": "", "verdict": ""}


def test_text_is_escaped_and_markup_is_not() -> None:
    page = render("doctor.html", **{**EMPTY, "title": NASTY, "summary": Markup("<b>1 error</b>")})
    assert NASTY not in page
    assert page.count("&lt;/style&gt;&lt;script&gt;alert(1)&lt;/script&gt;") == 2
    assert '<p class="sum"><b>1 error</b></p>' in page


def test_every_page_has_a_policy_that_lets_nothing_in() -> None:
    page = render("doctor.html", **EMPTY, title="x")
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in page
    page = render("explanation.html", source="x", content={"a": NASTY})
    scripts = " ".join(f"'{checksum(file(name))}'" for name in ("explorer.js", "explanation.js"))
    assert f"default-src 'none'; script-src {scripts}; base-uri 'none'; style-src" in page
    assert NASTY not in page


def test_a_value_that_was_forgotten_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="summary"):
        render("doctor.html", title="x", findings=[], columns=[], rows=[], figures=[], missing="", verdict="")


def test_scripts_and_styles_cannot_end_their_element() -> None:
    names = [
        entry.name for entry in resources.files("dragoman.pages").iterdir() if entry.name.endswith((".css", ".js"))
    ]
    assert sorted(names) == [
        "api.css", "api.js", "doctor.css", "explanation.js", "explorer.css", "explorer.js", "lab.css", "look.css",
        "report.css", "serve.css", "serve.js", "serve_texts.js",
    ]  # fmt: skip
    for name in names:
        assert "</s" not in file(name)


def test_a_page_in_a_frame_is_text_to_the_page_around_it() -> None:
    inner = render("doctor.html", **EMPTY, title=NASTY)
    frame = framed(inner, 300)
    assert "<script" not in frame
    assert frame.count("<") == 2  # the frame, and its end
    assert 'sandbox="allow-scripts allow-downloads"' in frame
    [source] = re.findall(r'srcdoc="([^"]*)"', frame)
    assert html.unescape(source) == inner


def test_a_table_shows_text_as_text() -> None:
    table = render("table.html", text=NASTY, columns=[NASTY], rows=[(NASTY, "<b>")])
    assert "<script" not in table
    assert "<b>" not in table
    assert table.count("&lt;script&gt;alert(1)") == 3
