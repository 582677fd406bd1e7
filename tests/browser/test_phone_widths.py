"""The page of the server on phones: no ribbon of attention runs behind a word, and nothing is wider than the screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from test_serve_page import explored, url  # noqa: F401  (a fixture)

pytestmark = pytest.mark.browser

PHONES = [320, 345, 360, 375, 390, 412, 430]
WIDER = [700, 768, 1024]
TEXTS = {
    "two sentences": "the dog sleeps here. the woman sees a cat today.",
    "short": "the dog sleeps",
    "long": "the big dog sees a small red cat here today and the man likes the green house and a tree",
}
BEHIND = """() => {
  const words = [...document.querySelectorAll(".ex-sentences .ex-chip")].map((chip) => chip.getBoundingClientRect());
  const hits = [];
  for (const path of document.querySelectorAll(".ex-links path")) {
    const box = document.querySelector(".ex-links").getBoundingClientRect(), length = path.getTotalLength();
    const half = Number(path.getAttribute("stroke-width")) / 2;
    const ends = [0, length].map((at) => path.getPointAtLength(at));
    const near = (rect, point) => box.left + point.x > rect.left - 8 && box.left + point.x < rect.right + 8
      && box.top + point.y > rect.top - 8 && box.top + point.y < rect.bottom + 8;
    for (const rect of words) {
      if (ends.some((end) => near(rect, end))) continue;  // a word that the ribbon links
      for (let i = 0; i <= 60; i++) {
        const { x, y } = path.getPointAtLength((length * i) / 60);
        if (box.left + x > rect.left && box.left + x < rect.right
          && box.top + y + half > rect.top && box.top + y - half < rect.bottom) { hits.push(i); break; }
      }
    }
  }
  return [document.querySelectorAll(".ex-links path").length, hits.length];
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_ribbon_runs_behind_a_word(open_page: Callable[..., Any], url: str, theme: str) -> None:  # noqa: F811
    wrong = []
    for width in [*PHONES, *WIDER]:
        page = open_page(url, viewport={"width": width, "height": 800}, color_scheme=theme)
        for name, text in TEXTS.items():
            explored(page, text)
            n_links, n_behind = page.evaluate(BEHIND)
            assert n_links, name
            if n_behind:
                wrong.append(f"{width} px, {name}: {n_behind} ribbons behind words")
    assert wrong == []


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_nothing_is_wider_than_a_phone(open_page: Callable[..., Any], url: str, locale: str) -> None:  # noqa: F811
    for width in PHONES:
        page = open_page(url, viewport={"width": width, "height": 800}, locale=locale)
        explored(page, TEXTS["long"])
        wide, shown = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= shown, f"{width} px"
