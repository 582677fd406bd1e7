"""Noise: what it does to a line, what it leaves alone, and that chance alone decides."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import NoiseConfig
from dragoman.data import noise
from dragoman.data.noise import (
    fingerprint,
    noised,
    noised_pairs,
    one_word,
    other_case,
    other_punctuation,
    sure_translations,
    swapped_initial,
    titled,
    with_insert,
    with_masks,
    with_typos,
    without_final_mark,
    words_of,
)
from limits import cpu_limit

SRC, TGT = "A man's dog Rex, 23 years old, runs over the bridge.", "Der Hund Rex eines Mannes, 23 Jahre alt, rennt."
LEXICON = {"dog": "Hund", "bridge": "Brücke", "years": "Jahre"}
ALL = NoiseConfig(case=1, punctuation=1, typos=1, one_word=1, inserts=1)


def seen(change: Callable[[str, random.Random], str], text: str, times: int = 300) -> Counter[str]:
    chance = random.Random(1)
    return Counter(change(text, chance) for _ in range(times))


def test_case_is_changed_in_four_ways_and_nothing_else() -> None:
    found = seen(other_case, SRC, 600)
    assert set(found) == {SRC.upper(), SRC.lower(), titled(SRC), swapped_initial(SRC)}
    assert titled("don't  stop me") == "Don't  Stop Me"
    assert swapped_initial("Ärger") == "ärger"
    assert swapped_initial("") == ""
    assert 150 < found[SRC.upper()] < 250  # a third
    assert 150 < found[SRC.lower()] < 250


@pytest.mark.parametrize(
    ("text", "without"),
    [("Go.", "Go"), ("Go ?!", "Go"), ("Go... ", "Go"), ("去。", "去"), ("No mark", "No mark"), ("e.g. it", "e.g. it"),
     ("...", "..."), ("", ""), ("What (is it?)", "What (is it?)")],
)  # fmt: skip
def test_the_final_mark_is_left_out_and_nothing_else(text: str, without: str) -> None:
    assert without_final_mark(text) == without


def test_punctuation_changes_at_the_end_alone() -> None:
    found = seen(other_punctuation, "It is 3.5, e.g. here.")
    assert set(found) == {"It is 3.5, e.g. here", "It is 3.5, e.g. here .", "It is 3.5, e.g. here..."}
    assert found["It is 3.5, e.g. here"] > 150
    assert set(seen(other_punctuation, "No mark")) == {"No mark.", "No mark!", "No mark .", "No mark..."}


@given(st.text(max_size=60), st.integers(0, 2**32))
def test_typing_errors_are_few_and_spare_digits(text: str, seed: int) -> None:
    found = with_typos(text, random.Random(seed))
    assert "\n" not in found or "\n" in text
    most = 1 + int(0.1 * len(text))
    assert abs(len(found) - len(text)) <= most
    digits = [c for c in text if c.isdigit()]
    assert [c for c in found if c.isdigit() and not c.isalpha()] == [c for c in digits if not c.isalpha()]


def test_each_kind_of_typing_error_comes() -> None:
    found = seen(lambda text, chance: noise.typo(text, chance), "dog on 7 hills", 3000)
    letters = {"dgo on 7 hills", "dg on 7 hills", "dogg on 7 hills", "dpg on 7 hills", "fog on 7 hills"}
    spaces = {"dog  on 7 hills", "dogon 7 hills", "do g on 7 hills", " dog on 7 hills", "dog on 7 hills "}
    assert letters | spaces < set(found)
    assert all("7" in text for text in found)
    assert found["dog on 7 hills"] < 100  # two equal letters swapped


def test_keys_that_are_neighbours() -> None:
    assert noise.NEIGHBOURS["q"] == "w"
    assert noise.NEIGHBOURS["s"] == "ad"
    assert noise.NEIGHBOURS["m"] == "n"
    assert len(noise.NEIGHBOURS) == 26


def test_longer_lines_get_more_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "typo", lambda text, chance: text + "\0")
    for n_words, most in ((1, 1), (5, 2), (50, 20)):
        errors = [with_typos("word " * n_words, random.Random(seed)).count("\0") for seed in range(500)]
        assert (min(errors), max(errors)) == (1, most)
    assert sum(errors) / 500 == pytest.approx(0.05 * 200, rel=0.1)


def test_an_insert_is_the_same_on_both_sides() -> None:
    chance, found = random.Random(1), set()
    for _ in range(400):
        src, tgt = with_insert(SRC, TGT, chance)
        insert = src.replace(SRC, "").strip()
        assert insert
        assert (src, tgt) in ((f"{SRC} {insert}", f"{TGT} {insert}"), (f"{insert} {SRC}", f"{insert} {TGT}"))
        found.add(insert)
    assert found > set(noise.EMOJI)
    addresses = found - set(noise.EMOJI)
    assert any("@" in text for text in addresses)
    assert any(text.startswith("https://www.") for text in addresses)
    assert len(addresses) > 100  # made up, so that copying is learned and not a list


def test_one_word_is_a_word_of_the_source_with_its_translation_in_the_target() -> None:
    chance = random.Random(1)
    assert {one_word(SRC, TGT, LEXICON, chance) for _ in range(50)} == {("dog", "Hund"), ("years", "Jahre")}
    assert one_word("bridges", "Brücke", LEXICON, chance) == ("bridges", "Brücke")


def test_words_are_what_stands_between_spaces_without_marks_around() -> None:
    assert words_of('  "Don\'t!"  (a) -- T-shirt, 3.5') == ["Don't", "a", "T-shirt", "3.5"]


def toy(count: int) -> list[tuple[str, str]]:
    """Word by word, but an article depends on its noun and one word is often left out."""
    chance = random.Random(1)
    nouns = {"dog": ("der", "Hund"), "horse": ("das", "Pferd"), "cat": ("die", "Katze"), "house": ("das", "Haus")}
    rest = {"runs": "rennt", "sleeps": "schläft", "here": "hier", "today": "heute", "really": "wirklich"}
    pairs = []
    for _ in range(count):
        noun, others = chance.choice(list(nouns)), chance.sample(list(rest), 2)
        kept = [rest[word] for word in others if word != "really" or chance.random() < 0.2]
        definite, name = nouns[noun]
        article = chance.choice([definite, "dieses", "jenes"])
        pairs.append((f"The {noun} {' '.join(others)}.", " ".join([article, name, *kept]) + "."))
    return pairs


def test_sure_translations_are_found_and_doubtful_ones_left_out() -> None:
    assert sure_translations(toy(400)) == {
        "dog": "Hund", "horse": "Pferd", "cat": "Katze", "house": "Haus", "runs": "rennt", "sleeps": "schläft",
        "here": "hier", "today": "heute",
    }  # fmt: skip


def test_rare_words_and_long_lines_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [("moon", "Mond")] * (noise.MIN_COUNT - 1)
    assert sure_translations(pairs) == {}
    assert sure_translations([*pairs, ("moon", "Mond")]) == {"moon": "Mond"}
    assert sure_translations([*pairs, ("moon " * 31, "Mond")]) == {}
    monkeypatch.setattr(noise, "MAX_PAIRS", 4)
    assert sure_translations([("moon", "Mond")] * 9) == {}


def test_text_without_spaces_gives_no_word_pairs() -> None:
    assert sure_translations((f"The dog runs {i}.", f"那只狗跑{i}。") for i in range(50)) == {}


def test_noise_falls_on_the_share_that_was_asked_for() -> None:
    pairs = [(SRC, TGT)] * 4000
    for kind in NoiseConfig.model_fields:
        chosen = NoiseConfig(**{kind: 0.3})
        found = list(noised_pairs(pairs, chosen, LEXICON, seed=1))
        assert 0.27 < sum(pair != (SRC, TGT) for pair in found) / 4000 < 0.33
        if kind in ("case", "punctuation", "typos"):
            assert all(tgt == TGT for _, tgt in found)  # the target stays as it is
    assert list(noised_pairs(pairs, NoiseConfig(), LEXICON, seed=1)) == pairs


def test_kinds_meet_in_one_line() -> None:
    for seed in range(50):
        src, tgt = noised(SRC, TGT, ALL, LEXICON, random.Random(seed))
        inserts = re.sub("Hund|Jahre", " ", tgt).split()
        assert inserts
        assert all(insert in src for insert in inserts)  # as they were: no error falls into them


def test_masks_stand_at_places_that_correspond() -> None:
    chance, seen = random.Random(5), set()
    for _ in range(300):
        src, tgt = with_masks("A dog runs.", "Ein Hund rennt.", {"dog": "Hund", "runs": "rennt"}, chance)
        masks = re.findall(r"\[[1-9]\]", src)
        assert 1 <= len(masks) <= 3
        assert sorted(masks) == sorted(re.findall(r"\[[1-9]\]", tgt))
        assert len(set(masks)) == len(masks)
        seen.add((re.sub(r"\d", "1", src), re.sub(r"\d", "1", tgt)))
    assert {
        ("A [1] runs.", "Ein [1] rennt."), ("A dog [1].", "Ein Hund [1]."), ("A dog [1] runs.", "Ein Hund [1] rennt."),
        ("A [1] dog runs.", "Ein [1] Hund rennt."), ("[1] A dog runs.", "[1] Ein Hund rennt."),
        ("A dog runs. [1]", "Ein Hund rennt. [1]"), ("A dog runs [1].", "Ein Hund rennt [1]."),
    } <= seen  # fmt: skip
    src, tgt = with_masks("A dog, a dog", "Ein Hund, ein Hund", {"dog": "Hund"}, random.Random(1))  # which of them?
    assert "dog, a dog" in src
    assert "Hund, ein Hund" in tgt


@given(st.text(max_size=40), st.text(max_size=40), st.integers(0, 2**32))
def test_any_text_is_taken_and_the_same_chance_gives_the_same_noise(src: str, tgt: str, seed: int) -> None:
    once = noised(src, tgt, ALL, LEXICON, random.Random(seed))
    assert noised(src, tgt, ALL, LEXICON, random.Random(seed)) == once
    for side in once:
        side.encode() if not any("\ud800" <= c <= "\udfff" for c in src + tgt) else None
        assert side.count("\n") <= (src + tgt).count("\n") * 2


def test_the_noise_never_changes_between_versions() -> None:
    # a change here means that a run with noise cannot be resumed bit for bit across it
    chosen = NoiseConfig(case=0.5, punctuation=0.5, typos=0.5, one_word=0.2, inserts=0.3)
    assert list(noised_pairs([(SRC, TGT)] * 6, chosen, LEXICON, seed=7)) == EXPECTED


EXPECTED = [
    ("a  man's dog rex,  23 years old, runs over the bridge", "Der Hund Rex eines Mannes, 23 Jahre alt, rennt."),
    ("dog", "Hund"),
    ("A Man's Sg Rex, 23 Yeas Old, Runs Over The Bridge", "Der Hund Rex eines Mannes, 23 Jahre alt, rennt."),
    ("A man's dog Rex, 23 years old, runs over the bridge", "Der Hund Rex eines Mannes, 23 Jahre alt, rennt."),
    ("A man's dog Rex, 23 years old, runs over the bridge.", "Der Hund Rex eines Mannes, 23 Jahre alt, rennt."),
    ("A man's dog Rex, 23 years old, runs over the bridge [1]", "Der Hund Rex eines Mannes, 23 Jahre alt, rennt. [1]"),
]


def test_the_fingerprint_knows_settings_and_words() -> None:
    assert len({fingerprint(ALL, LEXICON), fingerprint(ALL, {}), fingerprint(NoiseConfig(), LEXICON)}) == 3
    assert fingerprint(ALL, dict(reversed(LEXICON.items()))) == fingerprint(ALL, LEXICON)


def test_a_line_that_is_no_sentence_is_done_in_no_time() -> None:
    text = "a line of a megabyte " * 50_000
    with cpu_limit():  # each error was looked for in all of it: half an hour
        found = with_typos(text, random.Random(1))
    assert found != text
    assert found.endswith(text[2500:])


@pytest.mark.parametrize("filling", [" ", ".", " .", "-", "\u3000"])
def test_a_run_of_spaces_or_marks_takes_no_longer_than_other_text(filling: str) -> None:
    text = "a" + filling * 100_000 + "b"
    with cpu_limit():  # a regular expression takes minutes
        assert without_final_mark(text) == text
        assert other_punctuation(text, random.Random(1)).startswith(text)
        assert words_of(text)[0][0] == "a"
        assert text.startswith(without_final_mark(text[:-1]))
