"""Arguments are refused with one sentence that names them, what they must be and what they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pandas import DataFrame, Series

import dragoman
from dragoman.arguments import checked, in_words
from dragoman.errors import ConfigError, DataError


@checked
def work(texts: str | Sequence[str], out: Path | str = "x", n: int = 1, *, share: float | None = None) -> object:
    """Return the arguments as they arrive."""
    return texts, out, n, share


def test_what_fits_arrives_and_generators_and_arrays_become_lists() -> None:
    assert work("a", Path("b"), 3, share=1) == ("a", Path("b"), 3, 1)
    assert work(iter(["a", "b"])) == work(np.array(["a", "b"])) == (["a", "b"], "x", 1, None)
    assert work(pyarrow.array(["a", "b"])) == work(Series(["a", "b"])) == (["a", "b"], "x", 1, None)
    assert work(DataFrame(["a", "b"])) == work(pyarrow.table({"en": ["a", "b"]})) == (["a", "b"], "x", 1, None)
    with pytest.raises(
        DataError, match=r"texts is a table with the columns 0, 1: give one of them, such as texts\[0\]$"
    ):
        work(DataFrame([["a", "b"]]))
    assert work(("a",), share=0.5) == (("a",), "x", 1, 0.5)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (None, "texts must be a text or a list of texts, got NoneType"),
        (
            ["a", None],
            r"texts: number 2 must be a text \(str\), got None, a missing value: drop the row, or put an empty text",
        ),
        ([float("nan")], r"texts: number 1 must be a text \(str\), got nan, a missing value: .*"),
        ([np.float32("nan")], r"texts: number 1 must be a text \(str\), got nan, a missing value: .*"),
        (["a", 3.5], r"texts: number 2 must be a text \(str\), got float"),
        (["a", b"b"], r"texts: number 2 must be a text \(str\), got bytes"),
        ([np.zeros(2)], r"texts: number 1 must be a text \(str\), got ndarray"),
        (b"a", "texts must be a text or a list of texts, got bytes"),
        ({"a": "b"}, "texts must be a text or a list of texts, got dict"),
        ({"a"}, "texts must be a text or a list of texts, got set"),
        (np.array("a"), "texts must be a text or a list of texts, got ndarray"),
    ],
)
def test_a_text_that_is_none_is_a_data_error(texts: object, says: str) -> None:
    with pytest.raises(DataError, match=f"^{says}$"):
        work(texts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"out": 3}, "out must be a path, got 3"),
        ({"out": "a\0b"}, r"out must be a path, got 'a\\x00b'"),
        ({"n": True}, "n must be a whole number, got True"),
        ({"n": 2.0}, "n must be a whole number, got 2.0"),
        ({"share": float("nan")}, "share must be a number or None, got nan"),
        ({"share": "x" * 90}, r"share must be a number or None, got 'x+\.\.\."),
    ],
)
def test_another_argument_is_a_config_error(changes: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=f"^{says}$"):
        work("a", **changes)  # type: ignore[arg-type]


@checked
def several(ref: Sequence[str] | Sequence[Sequence[str]]) -> object:
    """Return the argument as it arrives."""
    return ref


def test_iterators_within_a_list_have_their_entries_after_the_check() -> None:
    assert several([iter(["a", "b"]), map(str, [1])]) == [["a", "b"], ["1"]]
    assert several(iter([Series(["a"]), ("b",)])) == [["a"], ["b"]]


def test_what_python_itself_names_stays_with_python() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'texts'"):
        work()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'beam'"):
        work("a", beam=4)  # type: ignore[call-arg]


def test_types_are_named_in_words() -> None:
    assert in_words(Path | str | Sequence[Path | str]) == "a path or a list of paths"
    assert in_words(Sequence[str] | Sequence[Sequence[str]]) == "a list of texts or a list, each a list of texts"


def test_the_views_of_a_mapping_have_an_order_and_are_lists() -> None:
    assert work({"a": 1, "b": 2}.keys()) == (["a", "b"], "x", 1, None)
    assert len(dragoman.Glossary({"dog": "Hund"}.items())) == 1
