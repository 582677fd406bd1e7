"""A glossary's term stands where the word stood that it replaces, once, and whatever else the line needs is left."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from dragoman.decoding.scoring import read_all
from dragoman.translation import pair_reader
from dragoman.translation.keeping import rendering
from dragoman.translation.keeping.glossary import Glossary, Match
from dragoman.translation.keeping.placing import absent
from dragoman.translation.translator import Translator

LINES = ["the dog sees a cat", "a dog likes the big dog here", "today the red cat sleeps", "the man finds a dog today"]


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run, "cpu")


@pytest.mark.parametrize(
    ("terms", "words", "n_beside"),
    [
        # words the model never saw: on some processors a tiny model puts one in the place of another word of one line
        ({"dog": "wauwau"}, {"hund": "wauwau"}, 1),
        ({"dog": "baum", "cat": "miau"}, {"hund": "baum", "katze": "miau"}, 1),
        ({"dog": None, "today": "nun gut"}, {"hund": "dog", "heute": "nun gut"}, 0),
        ({"dog": "hund"}, {}, 0),
    ],
)
def test_a_term_replaces_what_stood_there_and_nothing_else(
    translator: Translator, terms: dict[str, str | None], words: dict[str, str], n_beside: int
) -> None:
    plain = [one.text for one in translator.translate(LINES)]
    found = translator.translate(LINES, glossary=terms)
    wanted = [" ".join(words.get(word, word) for word in text.split()) for text in plain]
    assert sum(one.text != text for one, text in zip(found, wanted, strict=True)) <= n_beside
    assert all(one.notes == () for one in found)
    for one, text in zip(found, wanted, strict=True):  # wherever it stands, each term is there as often
        assert [one.text.split().count(word) for word in words.values() if " " not in word] == [
            text.split().count(word) for word in words.values() if " " not in word
        ]


def test_each_pair_is_read_for_the_segment_that_lacks_the_term(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others pass such readings, and they stop when nobody waits for the segment any more: see ``read_all``."""
    sources: list[tuple[list[int], list[int]]] = []

    def recorded(model: Any, pairs: Any, device: Any, batch_tokens: int, **how: Any) -> Any:
        sources.extend((list(src), list(search.ids)) for (src, _), search in zip(pairs, how["searches"], strict=True))
        return read_all(model, pairs, device, batch_tokens, **how)

    monkeypatch.setattr(pair_reader, "read_all", recorded)
    translator.translate(LINES, glossary={"dog": "wauwau", "cat": "miau"})
    assert len(sources) > len(LINES)
    assert all(set(src) <= set(own) or len(src) < len(own) for src, own in sources)  # whole, without a term, or a term


def test_each_of_the_best_has_the_term_and_a_score_of_its_own(translator: Translator) -> None:
    (one,) = translator.translate(LINES[:1], glossary={"dog": "wauwau"}, n_best=3, beam_size=4, alignments=True)
    plain = translator.translate(LINES[:1])[0]
    assert all(other.text.split().count("wauwau") == 1 for other in (one, *one.alternatives))
    assert one.score < plain.score  # the model would not have said so
    assert one.log_prob == pytest.approx(translator.score(LINES[:1], [one.text])[0].log_prob, abs=1e-4)
    assert one.alignment is not None


def test_a_prefix_stays_and_the_notes_say_what_could_not_be_placed(translator: Translator) -> None:
    (one,) = translator.translate(["dog"], glossary={"dog": "wauwau"}, prefix="der hund")
    assert one.text.startswith("der hund")
    (one,) = translator.translate(["the dog sees a cat"], glossary={"dog": "wauwau"}, prefix="der hund sieht ein katze")
    assert [note.kind for note in one.notes] == ([] if "wauwau" in one.text else ["constraint"])


@pytest.mark.parametrize(
    "term",
    ["hof\u2011wauwau", "hof\u00adwauwau", "z.\u202fB. wauwau", "wau\u200bwau", "\ufb01wau", "wauwau\u206e", "ｗauwau"],
)
def test_a_term_arrives_as_it_is_stored(translator: Translator, term: str) -> None:
    plain = translator.translate("the dog sleeps", glossary={"dog": "wauwau"}).text
    for line in ("the dog sleeps", "the dog sees the dog"):
        one = translator.translate(line, glossary={"dog": term})
        assert one.text.count(term) == line.count("dog")
        assert one.notes == ()
    assert translator.translate("the dog sleeps", glossary={"dog": term}).text == plain.replace("wauwau", term)


def test_only_terms_get_their_stored_form(translator: Translator) -> None:
    source = "the dog sees https://a.b/wauwau/y"
    assert translator.translate(source, glossary={"dog": "ｗauwau"}).text.count("/wauwau/") == 1
    for nothing in ("\u200b", "\u00ad"):  # normalised, nothing is left of them
        text = translator.translate("the dog sleeps", glossary={"dog": nothing}).text
        assert text.count(nothing) <= 1


def test_terms_that_would_take_too_long_to_search_for_are_named_in_the_notes(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a search for words grows with the square of their ids, and its beam could grow with their number."""
    monkeypatch.setattr(rendering, "PLACES", 0)  # no word is replaced: all is left to the search
    (within,) = translator.translate(["dog"], glossary={"dog": "xyzvw " * 4})
    (beyond,) = translator.translate(["dog " * 30], glossary={"dog": "xyzvw" * 10}, guard=False)
    assert "xyzvw" in within.text
    assert "xyzvw" not in beyond.text
    assert {note.kind for note in beyond.notes} == {"constraint"}


def test_a_line_with_many_long_terms_is_not_read_at_thousands_of_tokens(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory of a reading grows with the square of its tokens: a server was ended by a line of twelve terms."""
    lengths: list[int] = []

    def recorded(model: Any, pairs: Any, *arguments: Any, **how: Any) -> Any:
        lengths.extend(len(tgt) for _, tgt in pairs)
        return read_all(model, pairs, *arguments, **how)

    monkeypatch.setattr(pair_reader, "read_all", recorded)
    terms = {word: f"{i}" * 1000 for i, word in enumerate(["dog", "likes", "the", "big", "here"])}
    line = "a dog likes the big cat here"
    one = translator.translate(line, glossary=terms, alignments=True)
    assert 1000 < max(lengths) < 2000
    placed = [term for term in terms.values() if term in one.text]
    assert len(placed) == 1
    assert sum("could not be placed" in note.text for note in one.notes) == len(terms) - 1


def test_it_needs_no_search_of_its_own_so_it_goes_with_ctranslate2(tiny_run: Path, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    shutil.copytree(tiny_run, tmp_path / "run")
    translator = Translator.load(tmp_path / "run", "cpu")
    texts = [
        [one.text for one in translator.translate(LINES, glossary={"dog": "wauwau"}, engine=engine)]
        for engine in ("ctranslate2", "torch")
    ]
    assert texts[0] == texts[1]


def test_what_the_glossary_translates_need_not_arrive_unchanged(translator: Translator) -> None:
    (one,) = translator.translate(["the dog likes 🙂 today"], glossary={"🙂": "katze"})
    assert [note.kind for note in one.notes if note.kind == "placeholder"] == []


def test_terms_are_absent_as_often_as_they_are() -> None:
    glossary = Glossary([("dog", "Hündchen"), ("cat", None)])
    assert absent(glossary, "a dog, a cat", "Ein Hündchen, eine cat") == []
    assert absent(glossary, "a dog, a dog", "Ein Hündchen") == [Match("dog", "Hündchen", 9)]
    assert absent(glossary, "a cat", "Eine Katze") == [Match("cat", "cat", 2)]


PHRASES = [
    ("the dog sees a cat", {"the dog": "die wauwau"}, {"der hund": "die wauwau"}),
    ("the dog sees a cat", {"a cat": "miau"}, {"ein katze": "miau"}),
    ("a dog likes the big dog here", {"big dog": "wauwau"}, {"gross hund": "wauwau"}),
    ("a dog likes the big dog here", {"the big dog": "den wauwau"}, {"der gross hund": "den wauwau"}),
    ("today the red cat sleeps", {"red cat": "miau"}, {"rot katze": "miau"}),
]


@pytest.mark.parametrize(("line", "terms", "words"), PHRASES)
def test_all_words_that_render_a_phrase_are_replaced_and_no_others(
    translator: Translator, line: str, terms: dict[str, str | None], words: dict[str, str]
) -> None:
    expected = translator.translate(line).text
    for old, new in words.items():
        assert old in expected
        expected = expected.replace(old, new)
    assert translator.translate(line, glossary=terms).text == expected
