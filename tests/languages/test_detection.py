"""Detection of the language of short texts, judged by the catalogues of Django and CLDR."""

from __future__ import annotations

import pytest

from benchmarks.language_inputs import SHORT_LANGUAGES, greetings, short_texts
from benchmarks.languages import detection_figures, product_guess


@pytest.mark.xfail(strict=True, reason="most languages are not known")
def test_the_language_of_short_texts_is_detected_with_a_confidence_that_is_true() -> None:
    figures = detection_figures(short_texts(1), product_guess(SHORT_LANGUAGES))
    assert figures["right"] >= 0.85
    assert figures["mean_gap"] <= 0.05
    assert figures["largest_gap_of_a_bin_of_20"] <= 0.1


@pytest.mark.xfail(strict=True, reason="no greeting is known")
def test_greetings_are_known() -> None:
    assert detection_figures(greetings(), product_guess(SHORT_LANGUAGES))["right"] >= 0.9
