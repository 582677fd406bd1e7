"""Stress: eleven dresses of one test set, and what is counted of their translations."""

from __future__ import annotations

import pytest

from dragoman.data.noise import EMOJI
from dragoman.evaluation import stress
from dragoman.evaluation.metrics import bleu, chrf
from dragoman.evaluation.stress import CLEAN, Stressed, Variant, long_lines, measure, n_words, table, typeset, variants
from dragoman.languages.casing import capitals
from dragoman.translation.notes import Note
from dragoman.translation.translator import Translation

SOURCES = ["The dog runs over 3 bridges.", "", "Two women see the House today!", "No mark"] * 30
REFERENCES = ["Der Hund rennt über 3 Brücken.", "", "Zwei Frauen sehen heute das Haus!", "Keine Marke"] * 30


def by_name(seed: int = 1) -> dict[str, Variant]:
    return {variant.name: variant for variant in variants(SOURCES, REFERENCES, "en", "de", seed)}


def test_there_are_twelve_variants_with_the_references_as_they_are() -> None:
    found = by_name()
    assert list(found) == [
        CLEAN, "capitals", "Title Case", "lower case", "typing errors", "no final mark", "more final marks",
        "white space", "typography", "emoji, addresses", "one word", "2,000 words",
    ]  # fmt: skip
    assert found[CLEAN].sources == SOURCES
    for name in list(found)[:9]:
        assert found[name].references == REFERENCES
    assert found["capitals"].sources[0] == "THE DOG RUNS OVER 3 BRIDGES."
    assert found["lower case"].sources[2] == "two women see the house today!"
    assert found["no final mark"].sources[:4] == ["The dog runs over 3 bridges", "", SOURCES[2][:-1], "No mark"]
    assert found["Title Case"].sources[0] == "The Dog Runs Over 3 Bridges."
    assert found["more final marks"].sources[:4] == [SOURCES[0] + ".", "", SOURCES[2] + "!", "No mark."]
    spaced = found["white space"].sources
    assert [text.split() for text in spaced] == [text.split() for text in SOURCES]
    assert len({(text[:1], text[3:5]) for text in spaced[::4]}) > 3
    assert typeset('He said "It\'s a dog - no..." twice.') == "He said “It’s a dog – no…”\u00a0twice."
    typed = found["typing errors"].sources
    assert sum(a != b for a, b in zip(typed, SOURCES, strict=True)) > 80
    assert typed[1] == ""
    assert all("3" in text for text in typed[::4])


def test_an_emoji_or_address_stands_in_the_reference_too() -> None:
    inserted, emoji = by_name()["emoji, addresses"], 0
    assert inserted.references is not None
    for src, ref, old_src, old_ref in zip(inserted.sources, inserted.references, SOURCES, REFERENCES, strict=True):
        if not old_src:
            assert src == ref == ""
            continue
        insert = src.replace(old_src, "").strip()
        assert insert
        assert ref.replace(old_ref, "").strip() == insert
        assert src.startswith(insert) == ref.startswith(insert)
        emoji += insert in EMOJI
    assert 25 < emoji < 65  # about half of 90


def test_one_word_has_no_reference() -> None:
    word = by_name()["one word"]
    assert word.references is None
    assert set(word.sources[::4]) == {"The", "dog", "runs", "over", "3", "bridges"}
    assert set(word.sources[1::4]) == {""}
    chinese = variants(["那只大狗在房子里睡觉。"] * 50, ["The dog sleeps."] * 50, "zh", "en")[10]
    assert all(len(word) == 2 and word in "那只大狗在房子里睡觉。" for word in chinese.sources)


def test_long_lines_hold_whole_sentences_and_their_references(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stress, "LONG_LINE", 25)
    found = long_lines([f"a b c d{i}" for i in range(30)], [f"x{i}" for i in range(30)], "en", "de")
    assert len(found) == 4  # of 7 sentences, 28 words each; the last two sentences fill no line
    assert found[1] == (" ".join(f"a b c d{i}" for i in range(7, 14)), " ".join(f"x{i}" for i in range(7, 14)))
    assert long_lines(["a b"], ["x"], "en", "de") == [("a b", "x")]  # too few for one, and yet something
    chinese = long_lines(["那只大狗。"] * 10, ["the dog."] * 10, "zh", "en")
    assert chinese == [("那只大狗。" * 5, " ".join(["the dog."] * 5))] * 2


def test_two_thousand_words_are_two_thousand() -> None:
    lines = variants([*SOURCES * 30], [*REFERENCES * 30], "en", "de")[11]
    assert lines.references is not None
    assert len(lines.sources) == len(lines.references) > 3
    assert all(2000 <= n_words(line, "en") < 2006 for line in lines.sources)


def test_the_same_seed_gives_the_same_variants_and_another_one_does_not() -> None:
    assert by_name() == by_name()
    one, other = by_name(1), by_name(2)
    assert [name for name in one if one[name] != other[name]] == [
        "typing errors", "white space", "emoji, addresses", "one word",
    ]  # fmt: skip


def test_what_is_measured() -> None:
    variant = Variant(
        "capitals", ["A DOG RUNS HERE.", "", "TWO CATS SLEEP.", "NO."], ["Ein Hund.", "", "Zwei.", "Nein."]
    )
    found = [
        Translation("Ein Hund.", 0, n_tokens=4),
        Translation("", 0),
        Translation("Zwei " * 12, 0, n_tokens=13, notes=(Note("loop", "loop left: the rest", left=True),)),
        Translation("", 0, n_tokens=1),
    ]
    clean = Stressed(CLEAN, 4, 50.0, 60.0, 0, 0, 0, 0, 0, 1)
    one = measure(variant, found, [6, 0, 5, 3], ("en", "de"), clean)
    hyps = [translation.text for translation in found]
    assert variant.references is not None
    assert one.bleu == bleu(hyps, variant.references, "de").value
    assert one.chrf == chrf(hyps, variant.references).value
    assert one.bleu_loss == 50 - one.bleu
    assert one.chrf_loss == 60 - one.chrf
    assert one.lines == 4
    assert one.guarded == pytest.approx(100 / 3)  # of three that are not blank
    assert one.faulty == pytest.approx(200 / 3)
    assert one.empty == pytest.approx(100 / 3)
    assert one.words == pytest.approx(14 / 3)


@pytest.mark.parametrize(
    ("lang", "refs"),
    [("de", ["Die weiße Straße ist groß.", "Er weiß es."]), ("el", ["Αυτός είναι ο σκύλος.", "Καλημέρα σας, κύριε."]),
     ("tr", ["Işık iyi bir kız.", "Bizim ılık sıcak İstanbul."])],
)  # fmt: skip
def test_capitals_as_the_language_has_them_lose_nothing(lang: str, refs: list[str]) -> None:
    def measured(variant: Variant, texts: list[str], clean: Stressed | None = None) -> Stressed:
        found = [Translation(text, 0, n_tokens=4) for text in texts]
        return measure(variant, found, [4] * len(texts), ("en", lang), clean)

    sources = ["One two three four."] * 2
    clean = measured(Variant(CLEAN, sources, refs), refs)
    found = measured(Variant("capitals", sources, refs, caseless=True), [capitals(text, lang) for text in refs], clean)
    assert (found.bleu, found.chrf) == pytest.approx((100, 100))
    assert (found.bleu_loss, found.chrf_loss) == pytest.approx((0, 0))
    assert variants(["I GO"], ["x"], "tr", "en")[3].sources == ["ı go"]


def test_other_notes_are_none_of_the_guards() -> None:
    assert not stress.is_guarded(Translation("x", 0, notes=(Note("constraint", "the word 'dog' is missing"),)))
    assert stress.is_guarded(
        Translation(
            "x",
            0,
            notes=(Note("split", "another"), Note("copy", "the source was copied: translated again")),
        )
    )


def test_without_references_only_shares_and_lengths_are_said() -> None:
    one = measure(Variant("one word", ["dog"], None), [Translation("Hund", 0, n_tokens=2)], [1], ("en", "de"))
    assert (one.bleu, one.chrf, one.bleu_loss, one.chrf_loss) == (None, None, None, None)
    assert (one.guarded, one.faulty, one.empty, one.words) == (0, 0, 0, 1)


def test_the_table_has_a_line_for_each_variant() -> None:
    results = [
        Stressed(CLEAN, 1000, 41.5, 64.25, 0, 0, 0, 0.5, 0, 11.25),
        Stressed("capitals", 1000, 1.5, 20.0, 40.0, 44.25, 12.5, 3, 1, 30),
        Stressed("one word", 1000, None, None, None, None, 0, 0, 0, 1.2),
    ]
    lines = table(results)
    assert len({len(line) for line in lines}) == 1
    wanted = """
        source lines BLEU loss chrF2 loss guarded faulty empty words a line
        as it is 1,000 41.50 - 64.25 - 0.0% 0.5% 0.0% 11.2
        capitals 1,000 1.50 40.00 20.00 44.25 12.5% 3.0% 1.0% 30.0
        one word 1,000 - - - - 0.0% 0.0% 0.0% 1.2
    """
    assert [line.split() for line in lines] == [line.split() for line in wanted.strip().split("\n")]
