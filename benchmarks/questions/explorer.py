"""The server's pages in Chromium on loopback: bytes sent, first paint, and what axe-core finds.

The page to translate on, and the attention of a sentence as a page of its own; three widths, both themes. Needs
``make test-browser``'s packages.
"""

from __future__ import annotations

import argparse
import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from benchmarks.record import save, spread
from dragoman.serving.app import build
from dragoman.serving.options import ServeOptions
from dragoman.serving.pairs import Pairs
from dragoman.translation.translator import Translator

TEXT = "The clever teacher who sleeps reads the old book that the happy girl repaired last week."
WIDTHS = (375, 768, 1440)
PAINTED = "performance.getEntriesByName('first-contentful-paint').map((one) => one.startTime)[0]"


@contextmanager
def served(run: Path) -> Iterator[str]:
    """The address of a server of this run."""
    app, state = build(Pairs([Translator.load(run)]), ServeOptions())
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    state.service.warm()
    while not server.started:
        thread.join(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join()


def visit(browser: Any, url: str, path: str, width: int, theme: str) -> dict[str, Any]:
    """One page as one reader sees it: bytes of all answers, first paint, violations."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, locale="en-US")
    page = context.new_page()
    sent: list[int] = []
    page.on("requestfinished", lambda request: sent.append(request.sizes()["responseBodySize"]))
    page.goto(url + path)
    of_page = sum(sent)
    if not path:
        page.fill("#source", TEXT)
    page.locator("#explorer .ex-thumb").first.wait_for(timeout=30_000)
    page.wait_for_timeout(200)
    found = {
        "bytes": of_page, "bytes_with_a_translation": sum(sent), "first_paint_ms": page.evaluate(PAINTED),
        "violations": Axe().run(page).violations_count,
        "fits": page.evaluate("document.documentElement.scrollWidth <= innerWidth"),
    }  # fmt: skip
    context.close()
    return found


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="a trained run, such as that of dragoman demo")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    args = parser.parse_args()
    figures: dict[str, Any] = {"text": TEXT, "widths": WIDTHS, "themes": ["light", "dark"]}
    with served(args.run) as url, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
        figures["chromium"] = browser.version
        for name, path in (("translate", ""), ("explain", f"explain?text={TEXT.replace(' ', '%20')}")):
            seen = [visit(browser, url, path, width, theme) for width in WIDTHS for theme in ("light", "dark")]
            figures[name] = {
                "bytes": max(one["bytes"] for one in seen),
                "bytes_with_a_translation": max(one["bytes_with_a_translation"] for one in seen),
                "first_paint_ms": spread([one["first_paint_ms"] for one in seen]),
                "axe_violations": sum(one["violations"] for one in seen),
                "wider_than_the_window": sum(not one["fits"] for one in seen),
            }
        browser.close()
    packages = ("torch", "playwright", "axe-playwright-python")
    save("explorer", figures, "python -m benchmarks.questions.explorer --run runs/demo", packages)


if __name__ == "__main__":
    main()
