"""The pages that explain are what the code gives: the walk from its stored weights, the tour from the sources."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks import code_tour, diagrams, walk
from benchmarks.harness.environments import ROOT
from docs.site import chinese_figures
from docs.site.problems import BrokenDocsError
from dragoman.lab.chinese import texts


@pytest.fixture(scope="module")
def walked() -> walk.Walk:
    return walk.Walk(json.loads(walk.WEIGHTS.read_text(encoding="utf-8")))


def test_the_page_of_the_walk_has_the_numbers_of_its_weights(walked: walk.Walk) -> None:
    assert walk.PAGE.read_text(encoding="utf-8") == walk.page(walked)
    assert " ".join(walked.said[:-1]) == dict(walk.pairs())[walk.SENTENCE]
    assert list(walk.pairs())[walk.held_out()[0]][0] != ""
    assert walk.SENTENCE in {list(walk.pairs())[i][0] for i in walk.held_out()}


def test_the_pictures_of_the_walk_say_what_is_drawn_now(walked: walk.Walk, tmp_path: Path) -> None:
    walk.draw(walked, tmp_path)
    drawn = {path.name: list(texts(path.read_text(encoding="utf-8"))) for path in tmp_path.glob("*.svg")}
    kept = {path.name: list(texts(path.read_text(encoding="utf-8"))) for path in walk.FOLDER.glob("*.svg")}
    assert drawn == kept


def test_a_position_of_the_walks_decoder_does_not_see_later_ones(walked: walk.Walk) -> None:
    weights = walked.decoder.self_attn.sublayer.weights
    assert np.triu(weights[0, 0], 1).max() == 0
    np.testing.assert_allclose(weights.sum(-1), 1)


def test_the_code_tour_is_the_code_and_both_sides_agree() -> None:
    for path, text in code_tour.pages().items():
        assert path.read_text(encoding="utf-8") == text


def test_the_code_tour_can_be_pasted_in_both_languages(capsys: pytest.CaptureFixture[str]) -> None:
    english, chinese = (
        re.findall(
            r"^```python\n(.*?)^```$",
            "".join((ROOT / folder / page.name).read_text(encoding="utf-8") for page in code_tour.pages()),
            re.MULTILINE | re.DOTALL,
        )
        for folder in ("docs/understand", "docs/zh/understand")
    )
    assert english == chinese
    exec(compile("\n\n".join(english), "code-tour.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.split() == ["True"] * len(code_tour.STOPS)


def test_sides_that_differ_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = code_tour.STOPS[0]._replace(both=lambda: (np.zeros(3), np.array([0, 0, 1e-6])))
    monkeypatch.setattr(code_tour, "STOPS", (wrong,))
    with pytest.raises(SystemExit, match=r"differ by 1\.0e-06"):
        code_tour.pages()
    with pytest.raises(ValueError, match="shapes"):
        code_tour.difference((np.zeros(3), np.zeros(4)))


def test_the_diagrams_are_drawn_by_the_script() -> None:
    for name, drawn in (("transformer", diagrams.transformer()), ("attention-heads", diagrams.attention())):
        assert (ROOT / f"docs/images/{name}.svg").read_text(encoding="utf-8") == drawn
        assert "prefers-color-scheme:dark" in drawn
        assert "<title>" in drawn


def test_figures_in_chinese_are_made_from_the_english_ones() -> None:
    twins = chinese_figures.made()
    assert len(twins) > 60
    for path, text in twins.items():
        assert path.is_relative_to(ROOT / "docs")
        labels, chinese = list(texts(path.read_text(encoding="utf-8"))), list(texts(text))
        assert chinese != labels or not any(re.search("[a-z]{4}", label) for label in labels), path.name


def test_the_repository_keeps_the_chinese_figures_that_the_readme_shows_and_no_others() -> None:
    twins = chinese_figures.of_the_readme()
    assert twins
    for path, text in twins.items():
        assert path.read_text(encoding="utf-8") == text, "python -m docs.site figures"
    folders = [folder for folder in (ROOT / "docs").iterdir() if folder.is_dir() and folder.name != "_build"]
    assert {path for folder in folders for path in folder.rglob("*.zh-CN.svg")} == set(twins)


def test_a_label_without_chinese_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "words.yaml").write_text("step: 步\n", encoding="utf-8")
    monkeypatch.setattr(chinese_figures, "WORDS", tmp_path / "words.yaml")
    with pytest.raises(BrokenDocsError, match=r"no Chinese for labels of \S+\.svg: .+"):
        chinese_figures.made()
