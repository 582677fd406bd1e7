"""Tests and benchmarks hold what the project promises: they reach into no private name of its modules.

What is worth a test of its own is worth a public name, whichever module it is in.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

PUBLIC = {"_replace", "_asdict", "_fields", "_make", "_exit", "_repr_html_"}
"""Names with an underscore that are meant for everybody."""

THEIRS = {
    "tests/gpu_like.py": {"_to_copy", "_local_scalar_dense"},  # operators of torch
    "tests/languages/test_codes.py": {"_INSTANCES", "_PARSE_CACHE", "_DISTANCE_CACHE"},  # what langcodes keeps
    "tests/fast/test_private_ops.py": {"_is_mkldnn_bf16_supported", "_foreach_lerp_"},  # what the module is about
    "tests/faults/test_server_faults.py": {"_validate_path"},  # http.client refuses what a server must be asked
    "benchmarks/harness/arguments.py": {"_actions"},  # of argparse
    "benchmarks/encodings.py": {"_catalog"},
    "benchmarks/questions/small_corpora.py": {"_catalog"},
    "benchmarks/language_inputs.py": {"_catalog"},  # all texts of a gettext.GNUTranslations
    "benchmarks/peers/products.py": {"_int_mm"},  # of torch
}
"""Private names of other people's packages, where nothing public would do."""

PATCHING = {"setattr", "delattr", "getattr", "hasattr", "object", "multiple"}
"""Functions that are given the names of what they take or replace."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_" and name not in PUBLIC


def reached(code: str) -> Iterator[tuple[int, str]]:
    """The line and the name of each private name that is imported, read from something, or named to be replaced."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, alias.name) for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield node.lineno, node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            for given in node.args if function in PATCHING else []:
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    name = given.value.rpartition(".")[2]
                    if is_private(name):
                        yield given.lineno, name


def test_no_test_and_no_benchmark_reaches_into_a_private_name() -> None:
    found = []
    for path in sorted(path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        names = reached(path.read_text(encoding="utf-8"))
        found += [f"{where}:{line}: {name}" for line, name in names if name not in THEIRS.get(where, ())]
    assert found == []


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("from dragoman.data.batching import _order", "_order"),
        ("batching._order(3)", "_order"),
        ("monkeypatch.setattr(batching, '_order', None)", "_order"),
        ("monkeypatch.setattr('dragoman.data.batching._order', None)", "_order"),
        ("mock.patch.object(batching, '_order')", "_order"),
        ("self._seen = found._replace(a=1).__dict__", None),
    ],
)
def test_a_reach_is_seen(code: str, name: str | None) -> None:
    assert list(reached(code)) == ([] if name is None else [(1, name)])
