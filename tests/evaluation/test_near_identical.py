"""Near-identical texts score well in every script, with spaces between words or without."""

from __future__ import annotations

import pytest

from benchmarks.near_identical import SPACED, UNSPACED, all_texts, is_wrong, scores_of

RED = pytest.mark.xfail(strict=True, reason="only the languages of a list are scored by characters")


@pytest.mark.parametrize("scripts", [pytest.param(UNSPACED, marks=RED), SPACED], ids=["unspaced", "spaced"])
def test_two_changed_letters_of_a_line_cost_little(scripts: dict[str, tuple[str, ...]]) -> None:
    scored = {(texts.script, texts.lang): scores_of(texts) for texts in all_texts() if texts.script in scripts}
    assert len(scored) > 2 * len(scripts)
    assert not {name: scores for name, scores in scored.items() if is_wrong(scores)}
