"""Every declared option, given a value that it cannot have, is refused with one sentence: ``must be ..., got ...``."""

from __future__ import annotations

import dataclasses
import operator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dragoman
from benchmarks import declared_options
from benchmarks.declared_options import command_cases, configuration_cases, fault, http_cases, python_cases
from dragoman.errors import ConfigError
from dragoman.options import SearchOptions, json_schema, nearest, option_group
from dragoman.serving.app import build
from dragoman.serving.options import ServeOptions
from dragoman.serving.pairs import Pairs
from dragoman.translation.options import TranslateOptions
from dragoman.translation.translator import Translator


@pytest.mark.parametrize("cases", [python_cases, configuration_cases, command_cases, http_cases])
def test_no_impossible_value_is_accepted_or_refused_in_other_words(cases: object) -> None:
    tried = list(cases())  # type: ignore[operator]
    assert len(tried) > 50
    wrong = [f"{case.option} = {case.value!r}: {why}" for case in tried if (why := fault(case))]
    assert not wrong, f"{len(wrong)} of {len(tried)}:\n" + "\n".join(wrong)


REFUSED = [
    (
        ("distill", "--src", "s.en", "--beam-size", "5000", "--out", "student"),
        "beam_size must be at most 1000, got 5000",
    ),
    (
        ("distill", "--src", "s.en", "--ref", "s.de", "--best-of", "2000", "--out", "student"),
        "best_of must be at most 1000, got 2000",
    ),
    (
        ("augment", "--src", "s.en", "--n-best", "2000", "--out", "made", "--forward"),
        "n_best must be at most 1000, got 2000",
    ),
    (("serve", "--fast", "--engine", "ctranslate2"), "fast already chooses engine, precision and patience"),
    *(
        (words, "fast already chooses engine, precision and patience")
        for words in (
            ("serve", "--fast", "--precision", "bf16"),
            ("serve", "--fast", "--precision", "fp32"),  # which is the default, but not what --fast decodes in
            ("translate", "--precision", "fp32", "--fast"),
            ("evaluate", "--src", "s.en", "--ref", "s.de", "--fast", "--precision=fp32"),
        )
    ),
]


@pytest.mark.parametrize(("words", "says"), REFUSED, ids=lambda value: " ".join(value)[:40] if value else "")
def test_commands_refuse_in_one_line_what_only_translating_refused(
    command: Any, tiny_run: Path, corpus: Any, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    for name, text in (("s.en", corpus.valid_src), ("s.de", corpus.valid_tgt)):
        (tmp_path / name).write_bytes(text.read_bytes())
    done = command(*words, tiny_run, cwd=tmp_path)
    assert (done.status, done.out) == (2, b"")
    assert done.error.startswith(f"error: {says}")


def test_what_fast_makes_of_options_is_refused_as_they_are(tiny_run: Path) -> None:
    translator = Translator.load(tiny_run)
    translator.manifest["fast"] = {"beam_size": 2}
    with pytest.raises(ConfigError, match=r"^n_best must be at most 1000, got 2000$"):
        translator.plan(fast=True, n_best=2000)
    with pytest.raises(ConfigError, match=r"^n_best must be at most 1000, got 2000$"):
        dataclasses.replace(TranslateOptions(), n_best=2000)


def test_one_fault_is_worded_alike_at_every_door(command: Any, tiny_run: Path, corpus: Any, tmp_path: Path) -> None:
    says = "length_penalty must be at most 10, got 11.0"
    assert command("translate", tiny_run, "--length-penalty", "11").error == f"error: {says}"
    files = "--src", corpus.src, "--tgt", corpus.tgt, "--out", tmp_path / "run"
    assert command("train", *files, "--set", "decode.length_penalty=11").error.endswith(f" decode.{says}")
    with pytest.raises(ConfigError, match=f"^{says}$"):
        dragoman.TranslateOptions(length_penalty=11)
    case = next(case for case in http_cases() if case.option.endswith("/v1/translate length_penalty"))
    assert case.ask() == says.replace("at most 10, got 11.0", "0 or more, got -0.5")


@option_group
class Narrow(SearchOptions):
    """A group with a default of its own for an option that it inherits."""

    beam_size: int = 7


def test_a_group_may_give_an_inherited_option_a_default_and_keeps_its_limits() -> None:
    assert (Narrow().beam_size, Narrow().patience, Narrow(beam_size=3).beam_size) == (7, None, 3)
    for value, got in ((1001, "at most 1000, got 1001"), (None, "a whole number, got None")):
        with pytest.raises(ConfigError, match=f"^beam_size must be {got}$"):
            Narrow(beam_size=value)  # type: ignore[arg-type]
    described = json_schema(Narrow)["properties"]["beam_size"]
    assert (described["maximum"], described["description"]) == (1000, "Beam size; 1 is greedy search.")


def test_an_unknown_option_is_refused_with_the_nearest_name() -> None:
    for make in (TranslateOptions, lambda **changes: dataclasses.replace(TranslateOptions(), **changes)):
        with pytest.raises(ConfigError, match=r"^unknown option beam: did you mean beam_size\?$"):
            make(beam=3)
        with pytest.raises(ConfigError, match=r"^unknown option warn: pass it as events=Events\(warn=\.\.\.\)$"):
            make(warn=print)


@pytest.mark.parametrize("name", ["metric", "truncation"])
def test_a_name_that_is_like_no_option_is_not_taken_for_one(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^unknown option {name}: known are "):
        TranslateOptions(**{name: True})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("beem_size", "beam_size"), ("lenght_penalty", "length_penalty"), ("penalty", "length_penalty")],
)
def test_a_slip_or_a_part_of_a_name_is_taken_for_the_option(name: str, meant: str) -> None:
    assert nearest(name, ["deterministic", "beam_size", "length_penalty"]) == f"did you mean {meant}?"


def test_a_server_searches_as_it_was_told_where_a_request_does_not_say(tiny_run: Path) -> None:
    with pytest.raises(ConfigError, match=r"^beam_size must be at most max_beam = 16, got 17$"):
        ServeOptions(beam_size=17)
    _, state = build(Pairs([Translator.load(tiny_run)]), ServeOptions(beam_size=2, length_penalty=0.3))
    options = state.service.options(beam_size=3)
    assert (options.beam_size, options.length_penalty) == (3, 0.3)
    assert state.service.options().beam_size == 2
    assert [state.service.beam_size(pair) for pair in state.service.pairs] == [2]
    assert state.service.options(sample=True).beam_size is None  # which would have no effect


POINTED = ("-1.0", "0.0", "99999.0", "-99999.0")
"""Texts that pydantic reads as whole numbers, and Python's ``int`` does not."""


def past_a_limit(annotation: Any, **_: Any) -> list[str]:
    """Return those of the texts that the limits of an option exclude."""
    names = ("ge", "gt", "le", "lt")
    return excluded({
        name: getattr(about, name)
        for about in getattr(annotation, "metadata", ()) for name in names if hasattr(about, name)
    })  # fmt: skip


def excluded(limits: dict[str, float]) -> list[str]:
    accepts = {"ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt}
    bounds = [(accepts[name], bound) for name, bound in limits.items() if name in accepts]
    return [text for text in POINTED if not all(accept(float(text), bound) for accept, bound in bounds)]


@pytest.mark.parametrize("cases", [python_cases, configuration_cases, command_cases])
def test_a_number_past_its_limit_may_be_written_with_a_point(cases: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a number once ended in a traceback; HTTP is in ``tests/serving/test_strict_requests.py``."""
    monkeypatch.setattr(declared_options, "impossible", past_a_limit)
    tried = list(cases())
    assert len(tried) > 20
    wrong = [f"{case.option} = {case.value!r}: {why}" for case in tried if (why := fault(case))]
    assert not wrong, f"{len(wrong)} of {len(tried)}:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("value", "got"),
    [("-1.0", "-1"), ("0", "0"), (" 0.000 ", "0"), (0.0, "0"), ("-" + "9" * 4000 + ".0", "-9999"), (Fraction(0), "0")],
)
def test_a_refused_number_is_shown_as_the_option_has_it(value: Any, got: str) -> None:
    with pytest.raises(ConfigError, match=rf"^beam_size must be 1 or more, got {got}"):
        SearchOptions(beam_size=value)
