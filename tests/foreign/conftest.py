"""Counts the expected values of others, suite by suite.

    def test_something(suite):
        values = suite("t2t-beam", 9)          # of which suite, and how many values this test will ask for
        values.equal("greedy", ours, theirs)   # one value; a wrong one fails the test at its end
        values.near("score", ours, theirs, within=1e-6)
        values.differs("row 8", ours, theirs, because="we refuse what is no tree")    # fails as soon as it agrees
        values.not_tried("needs DATA=")        # skips the test; all its values are counted as skipped

A test that fails today, because of a fault that will be mended, is marked xfail with the reason. What was counted is
printed at the end, and written to the file that DRAGOMAN_FOREIGN names, from which the page is made.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from suites import SUITES

KNOWN = {suite.key for suite in SUITES}
TALLIES = pytest.StashKey[list["Values"]]()
COUNTED: dict[str, dict[str, Any]] = {}
"""Of each suite: how many values passed, and the others grouped by what explains them."""


class Values:
    """The values of one suite that one test asks for."""

    def __init__(self, key: str, planned: int) -> None:
        assert key in KNOWN, f"{key} is not in suites.py"
        self.key, self.planned = key, planned
        self.passed = 0
        self.failed: list[str] = []  # what was wrong
        self.different: list[tuple[str, str]] = []  # what, and why
        self.agreeing: list[str] = []  # said to differ, and does not
        self.skipped = ""  # why

    def equal(self, name: object, ours: object, theirs: object) -> None:
        """Count a value that must be the same."""
        self._count(ours == theirs, f"{name}: expected {theirs!r}, got {ours!r}")

    def near(self, name: object, ours: float, theirs: float, within: float) -> None:
        """Count a number that must be within ``within``."""
        is_near = math.isclose(ours, theirs, rel_tol=0.0, abs_tol=within)
        self._count(is_near, f"{name}: expected {theirs:.7g} within {within:g}, got {ours:.7g}")

    def differs(self, name: object, ours: object, theirs: object, because: str) -> None:
        """Count a value that differs for a reason that will stay."""
        if ours == theirs:
            self.agreeing.append(f"{name}: {ours!r}, and it was said to differ: {because}")
        self.different.append((f"{name}: expected {theirs!r}, got {ours!r}", because))

    def not_tried(self, reason: str) -> NoReturn:
        """Skip the test, and count its values as skipped."""
        self.skipped = reason
        pytest.skip(reason)

    def _count(self, is_right: bool, what: str) -> None:
        if is_right:
            self.passed += 1
        else:
            self.failed.append(what)

    @property
    def asked(self) -> int:
        return self.passed + len(self.failed) + len(self.different)


@pytest.fixture
def suite(request: pytest.FixtureRequest) -> Callable[[str, int], Values]:
    """A function that begins to count: which suite, and how many values this test asks for."""
    request.node.stash[TALLIES] = []

    def begin(key: str, planned: int) -> Values:
        values = Values(key, planned)
        request.node.stash[TALLIES].append(values)
        return values

    return begin


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Fail a test at its end if a value was wrong, and note what was counted."""
    broken = ""
    try:
        result = yield
        wrong = [line for values in pyfuncitem.stash.get(TALLIES, []) for line in _wrong(values)]
        if wrong:
            pytest.fail("\n".join(wrong), pytrace=False)
        return result
    except (Exception, pytest.fail.Exception) as error:
        broken = re.sub(r"/\S*/", "", " ".join(str(error).split()))[:300]  # without folders of this machine
        raise
    finally:
        mark = pyfuncitem.get_closest_marker("xfail")
        for values in pyfuncitem.stash.get(TALLIES, []):
            why = "" if mark is None else mark.kwargs["reason"]
            pyfuncitem.user_properties.append(("foreign", _note(values, why, broken)))


def _wrong(values: Values) -> list[str]:
    lines = [*values.failed[:5], *values.agreeing]
    if len(values.failed) > 5:
        lines.append(f"and {len(values.failed) - 5} more of {values.planned}")
    if values.asked != values.planned:
        lines.append(f"{values.asked} values were compared, and {values.planned} should be")
    return lines


def _note(values: Values, why: str, broken: str) -> dict[str, Any]:
    """What a test counted: failures and skips with the first of their kind as an example."""
    if values.skipped:
        return {"suite": values.key, "passed": 0, "others": [["skipped", values.planned, values.skipped, ""]]}
    others: list[list[Any]] = []
    lost = values.planned - values.asked
    if values.failed or lost > 0:
        example = values.failed[0] if values.failed else broken
        others.append(["failed", len(values.failed) + max(0, lost), why, example])
    for reason, count in Counter(reason for _, reason in values.different).items():
        example = next(what for what, other in values.different if other == reason)
        others.append(["failed", count, reason, example])
    return {"suite": values.key, "passed": values.passed, "others": others}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add what a test counted; its last report has all of it."""
    if report.when != "teardown":
        return
    for name, note in report.user_properties:
        if name == "foreign":
            suite = COUNTED.setdefault(note["suite"], {"passed": 0, "others": []})
            suite["passed"] += note["passed"]
            for kind, count, reason, example in note["others"]:
                for other in suite["others"]:
                    if (other["kind"], other["reason"]) == (kind, reason):
                        other["count"] += count
                        break
                else:
                    suite["others"].append({"kind": kind, "count": count, "reason": reason, "example": example})


def total(counts: dict[str, Any], kind: str) -> int:
    """How many values of a suite failed, or were skipped."""
    return sum(other["count"] for other in counts["others"] if other["kind"] == kind)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a line for each suite, and one for each reason."""
    if not COUNTED:
        return
    terminalreporter.section("expected values of others")
    for key in [suite.key for suite in SUITES if suite.key in COUNTED]:
        counts = COUNTED[key]
        failed, skipped = total(counts, "failed"), total(counts, "skipped")
        terminalreporter.write_line(f"{key:26}{counts['passed']:6} passed{failed:5} failed{skipped:5} skipped")
        for other in counts["others"]:
            terminalreporter.write_line(f"      {other['count']} {other['kind']}: {other['reason'] or 'UNEXPLAINED'}")
    terminalreporter.write_line(f"{len(COUNTED)} of {len(SUITES)} suites; the others need `make test-foreign`")


def pytest_sessionfinish() -> None:
    """Write what was counted."""
    if path := os.environ.get("DRAGOMAN_FOREIGN"):
        counted = [{**suite._asdict(), **COUNTED[suite.key]} for suite in SUITES if suite.key in COUNTED]
        Path(path).write_text(json.dumps(counted, ensure_ascii=False), encoding="utf-8")
