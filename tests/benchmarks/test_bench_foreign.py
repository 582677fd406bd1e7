"""The page of other people's tests says what the record says, and the record explains every value."""

from __future__ import annotations

import json

from benchmarks import foreign

RECORD = json.loads((foreign.RESULTS / "foreign.json").read_text(encoding="utf-8"))


def test_the_page_is_that_of_the_record() -> None:
    assert foreign.PAGE.read_text(encoding="utf-8") == foreign.page(RECORD)


def test_there_are_suites_and_each_value_is_explained() -> None:
    suites = RECORD["figures"]["suites"]
    assert len(suites) >= 20
    for suite in suites:
        assert suite["passed"] or suite["others"], suite["key"]
        assert all(other["reason"] for other in suite["others"]), suite["key"]
