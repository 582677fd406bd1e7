"""The page of ``dragoman doctor``, and those of the laboratory, in Chinese: three widths, both themes."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread

from dragoman.data import phrasebook
from dragoman.doctor.diagnosis import config_and_texts, diagnose_text
from dragoman.doctor.page import write_page
from dragoman.lab.experiment import Lab
from dragoman.lab.report import run_experiment

pytestmark = pytest.mark.browser

WIDTHS = {"phone": 375, "tablet": 768, "desktop": 1440}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("doctor")
    src, tgt = folder / "a-name-that-is-longer-than-the-screen-of-a-phone.en", folder / "b.de"
    phrasebook.write(300, src, tgt)
    src.write_text(src.read_text("utf-8") + "We sing.\n" * 9, "utf-8")
    tgt.write_text(tgt.read_text("utf-8") + "We sing.\n" * 9, "utf-8")
    config, texts = config_and_texts([src, tgt], None)
    write_page(diagnose_text(config, {"train": texts}, (), None, True).as_page(), folder / "found")
    run_experiment("attention", folder, Lab(folder, quick=True, language="zh"))
    found = {"doctor": folder / "found/doctor.html", "lab": folder / "index.html"}
    return {**found, "experiment": folder / "attention/index.html"}


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["doctor", "lab", "experiment"])
def test_it_fits(
    open_page: Callable[..., Any], check_look: Callable[[Any, str], None], pages: dict[str, Path],
    name: str, width: int, scheme: str,
) -> None:  # fmt: skip
    page = open_page(pages[name].as_uri(), viewport={"width": width, "height": 800}, color_scheme=scheme)
    check_look(page, scheme)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_ground_of_a_figure_is_that_of_its_page(
    open_page: Callable[..., Any], pages: dict[str, Path], scheme: str
) -> None:
    page = open_page(pages["experiment"].as_uri(), viewport={"width": 1200, "height": 800}, color_scheme=scheme)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    red, green, blue = (int(part) for part in paper.removeprefix("rgb(").removesuffix(")").split(","))
    for figure in page.locator("figure img").all():
        corner = 255 * imread(BytesIO(figure.screenshot()), format="png")[2, 2, :3]
        assert corner.round().tolist() == [red, green, blue]
