"""Time grows with the length of a text, not its square: every regular expression and parser, on hostile texts.

The register finds the patterns by itself, and the texts are made from them; see ``patterns.py``, ``hostile_strings.py``
and ``parsers.py``. Ratios of CPU times are compared, so no test here depends on the speed of a machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import patterns
import pytest
from amounts import amounts
from foreign_readers import ALIASES
from parsers import PARSERS

from dragoman.documents.formats import supported_suffixes
from growth import MOST, exponent
from linear_time import Case, measure, parser_cases, pattern_cases

pytestmark = pytest.mark.alone

Figure = Callable[[str, str], None]


QUICK_MOST = 1.5
"""Largest exponent of the short part: a busy machine measures small texts too roughly for ``MOST``."""


def _superlinear(cases: Iterable[Case], n: int, sizes: tuple[int, int]) -> dict[str, tuple[float, str]]:
    """Return the exponent and the text of each case that is not linear."""
    is_quick = n < 100
    results = (measure(case, sizes[0] if is_quick else sizes[1]) for case in cases)
    most = QUICK_MOST if is_quick else MOST
    return {result.where: (result.exponent, result.text) for result in results if result.exponent > most}


@amounts(8, 4000)
def test_L1_every_regular_expression_takes_linear_time(n: int, figure: Figure) -> None:
    cases = list(pattern_cases(n))
    assert _superlinear(cases, n, (2048, 8192)) == {}
    figure("L1", f"{len(cases)} patterns, {sum(len(case.texts) for case in cases):,} texts: exponent at most {MOST}")


def test_L1_every_pattern_of_the_sources_is_registered() -> None:
    assert patterns.unknown() == []
    known = {(entry.where.rpartition(":")[0]) for entry in patterns.registered()}
    for file, name in (*patterns.EXAMPLES, *patterns.ONLY, *patterns.AT_MOST):
        assert file in known, (file, name)


@amounts(4, 300)
def test_L2_every_parser_takes_linear_time(n: int, figure: Figure) -> None:
    cases = list(parser_cases(n))
    assert _superlinear(cases, n, (1024, 8192)) == {}
    figure("L2", f"{len(cases)} parsers, {sum(len(case.texts) for case in cases):,} texts: exponent at most {MOST}")


def test_L2_every_format_stands_in_the_table_of_parsers() -> None:
    assert {ALIASES.get(suffix, suffix) for suffix in supported_suffixes()} <= {parser.name for parser in PARSERS}


def test_the_measure_knows_linear_quadratic_and_exponential_time() -> None:
    import re

    def text(size: int) -> str:
        return "a" * size

    assert exponent(re.compile("a*b?").search, text, 4096) <= MOST
    assert exponent(re.compile("a*b").search, text, 8192) > 1.7  # of 4096 the calls themselves take a part that is seen
    assert exponent(re.compile("(?:a|a)*b").match, text, 256) > 5


def test_the_register_evaluates_what_a_module_makes() -> None:
    where = {entry.where for entry in patterns.registered()}
    assert {"documents/xml.py:_TOKEN", "translation/keeping/protected.py:_ALL", "documents/markup.py:TOKEN"} <= where
    assert sum(Path(entry.where.rpartition(":")[0]).suffix == ".js" for entry in patterns.registered()) > 5
