"""The language pairs of a server: a source is detected only where there is a choice."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dragoman.serving import pairs as module
from dragoman.serving.pairs import Pairs

TEXTS = (
    "A dog runs through the snow.",
    "Ein Hund rennt durch den Schnee.",
    "Un chien court dans la neige.",
    "12 34",
    "",
)


def serving(*pairs: tuple[str, str]) -> Pairs:
    languages = SimpleNamespace(served=lambda: [(src, tgt, tgt) for src, tgt in pairs])
    return Pairs([SimpleNamespace(is_parser=False, languages=languages)])


@pytest.mark.parametrize("tgt", [None, "de", "fr", "en", "ja"])
@pytest.mark.parametrize("text", TEXTS)
def test_the_chosen_source_is_the_most_likely_one(text: str, tgt: str | None) -> None:
    served = serving(("en", "de"), ("fr", "de"), ("en", "fr"), ("de", "en"))
    assert served.chosen_source(text, tgt) == served.source_of(text, tgt).code


def test_a_single_source_is_chosen_without_detecting(monkeypatch: pytest.MonkeyPatch) -> None:
    served = serving(("en", "de"), ("en", "fr"), ("fr", "en"))
    chosen = [served.chosen_source(text, tgt) for text in TEXTS for tgt in ("de", "en")]
    assert chosen == [served.source_of(text, tgt).code for text in TEXTS for tgt in ("de", "en")]
    monkeypatch.setattr(module, "probabilities", None)
    assert [served.chosen_source(text, tgt) for text in TEXTS for tgt in ("de", "en")] == chosen
    with pytest.raises(TypeError):
        served.chosen_source(TEXTS[0])


def test_a_text_that_is_surely_in_another_language_than_the_others_has_its_own_pair() -> None:
    served = serving(("en", "de"), ("fr", "de"), ("zh", "de"))
    english = served.find("en", "de")
    found = [
        served.own_source(text, english).src
        for text in (
            "Le temps est beau et nous sortons ce soir.",
            "Hand",
            "The weather is fine.",
            "12 34",
            "天气",
            "Bonjour",
        )
    ]
    assert found == ["fr", "en", "en", "en", "zh", "en"]
    assert serving(("en", "de")).own_source("Le temps est beau et nous sortons ce soir.", english) is english
