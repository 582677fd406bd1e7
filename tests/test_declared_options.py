"""Every declared option, given a value that it cannot have, is refused with one sentence: ``must be ..., got ...``."""

from __future__ import annotations

import pytest

from benchmarks.declared_options import command_cases, configuration_cases, fault, http_cases, python_cases


@pytest.mark.parametrize("cases", [python_cases, configuration_cases, command_cases, http_cases])
def test_no_impossible_value_is_accepted_or_refused_in_other_words(cases: object) -> None:
    tried = list(cases())  # type: ignore[operator]
    assert len(tried) > 50
    wrong = [f"{case.option} = {case.value!r}: {why}" for case in tried if (why := fault(case))]
    assert not wrong, f"{len(wrong)} of {len(tried)}:\n" + "\n".join(wrong)
