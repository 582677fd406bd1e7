"""Codes of languages, what is known of each, and a language that is added."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from langcodes import Language, language_distance

from dragoman.languages import codes
from dragoman.languages.codes import is_registered, language_of, match, primary, standard, variety
from dragoman.languages.known import LANGUAGES, is_known, known
from dragoman.languages.scripts import SCRIPTS


@pytest.mark.parametrize(
    ("name", "lang"),
    [
        ("train.en", "en"), ("train.en.gz", "en"), ("de.txt", "de"), ("a.tok.deu", "deu"), ("train.zh-CN", "zh-CN"),
        ("x.pt_BR.zst", "pt_BR"), ("corpus.src", None), ("a.tgt", None), ("my.raw", None), ("text", None),
        ("a.b2", None),
    ],
)  # fmt: skip
def test_a_language_is_the_last_part_of_a_name_if_it_looks_like_one(name: str, lang: str | None) -> None:
    assert language_of(Path("some.en") / name) == lang


def test_the_primary_language_is_what_counts() -> None:
    assert [primary(lang) for lang in ("zh-CN", "zh_TW", "ZH", "en", None)] == ["zh", "zh", "zh", "en", ""]


@pytest.mark.parametrize(
    ("lang", "short"), [("zho", "zh"), ("cmn_Hans", "zh"), ("chi", "zh"), ("jpn", "ja"), ("THA", "th"), ("deu", "de"),
                        ("ger-AT", "de"), ("eng_Latn", "en"), ("yue", "yue"), ("gsw", "gsw")],
)  # fmt: skip
def test_codes_of_three_letters_mean_the_same_languages(lang: str, short: str) -> None:
    assert primary(lang) == short


TABLES = (Language._INSTANCES, Language._PARSE_CACHE, language_distance._DISTANCE_CACHE)
"""All that langcodes keeps of what it is asked."""


@pytest.mark.parametrize("made_up", ["en-{:08}", "en-x-{:08}", "en-Latn-DE-{:08}", "zzz-a-{:08}"])
def test_S30_tags_that_clients_make_up_are_not_kept_for_ever(made_up: str, figure: Callable[[str, str], None]) -> None:
    """34,000 of one request took 130 MB, which no later request gave back."""
    for number in range(5000):
        tag = made_up.format(number)
        assert variety(tag) == made_up.split("-")[0]
        assert not is_registered(f"zz-{number:08}")
    assert standard(tag.upper()) == standard(tag)
    assert any(tag.lower() in str(key).lower() for key in Language._PARSE_CACHE)  # it is where langcodes keeps them
    most = max(map(len, TABLES))
    figure("S30", f"10,000 language tags that a client made up, like {made_up}: {most:,} kept at most")
    assert most < codes.MOST_KEPT + 100


def test_distances_between_regions_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes, "MOST_KEPT", 50)
    letters = [chr(ord("A") + i) for i in range(26)]
    served = ["pt-BR", "pt-PT"]
    assert match("pt-AO", served) == "pt-PT"
    assert {match(f"pt-{first}{second}", served) for first in letters[:10] for second in letters} == {*served}
    assert len(language_distance._DISTANCE_CACHE) < 100


def test_threads_that_read_tags_do_not_disturb_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """langcodes looks whether it has a tag, and then takes it: another thread may empty the table between the two."""
    monkeypatch.setattr(codes, "MOST_KEPT", 1)
    tags = [f"de-x-{number % 7:04}" for number in range(2000)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(standard, tags)) == tags


def test_every_language_of_the_list_has_a_code_and_a_name_of_its_own() -> None:
    codes = [code for language in LANGUAGES for code in (language.code, *language.dialects)]
    assert len(set(codes)) == len(codes)
    for language in LANGUAGES:
        assert (primary(language.code), bool(language.name)) == (language.code, True)
        assert set(language.scripts) <= set(SCRIPTS)
        assert known(f"{language.code}-XX") is language


def test_of_an_unknown_language_nothing_is_known_but_its_code() -> None:
    assert (known("gsw-CH").code, known("gsw-CH").spaces, known(None).code) == ("gsw", True, "")
    assert not is_known("gsw")


def test_a_language_is_added_by_one_entry() -> None:
    """In a process of its own, for the words of all languages are compared once."""
    script = """
from dragoman.languages.known import LANGUAGES, known, is_unspaced, unspaced_codes
from dragoman.languages.language import Clock, Language, NumberWords
LANGUAGES.append(Language(
    code="tlh", name="Klingon", scripts=("latin",), spaces=False, family="sci-fi", stop_words="jih soh ghah",
    no_abbreviations="Qap", continues=lambda tail, piece: piece.startswith("je"),
    numbers=NumberWords(stems="pagh wa cha wej los vagh jav soch chorgh hut mah mahwa mahcha"),
    clock=Clock(signs="bid", hours="wa cha wej los vagh jav soch chorgh hut mah mahwa mahcha", spoken=((30, "H bid"),)),
))
from dragoman.evaluation.writing import writing_of
from dragoman.languages import numbers, scripts, sentences, stopwords
from dragoman.serving.pairs import name_of
from dragoman.translation.faults import differ
from dragoman.translation.keeping.dates import times_of
assert [time.minutes for time in times_of("wej bid", "tlh")] == [{210}]
assert name_of("tlh-KX") == "Klingon" and is_unspaced("tlh") and "tlh" in unspaced_codes()
assert stopwords.language_scores("jih soh the") == {"tlh": 2.0, "en": 1.0}
assert stopwords.another_language(["jih", "soh"], "en") == "tlh"
assert numbers.Words("loS targh", "tlh").take(4) and not numbers.Words("loS", "tlh").take(5)
assert sentences.sentences("Qap. Mach. je Hegh.", "tlh") == ["Qap. ", "Mach. je Hegh."]
assert scripts.scripts_of("tlh", None) == ("latin",)
assert writing_of("tlh", ()).bleu_tokenizer == "char" and differ("tlh", "en")
"""
    subprocess.run([sys.executable, "-c", script], check=True)
