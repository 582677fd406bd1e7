"""First uses that come together make one thing: a folder, a pool, an engine, a value of a cache."""

from __future__ import annotations

import ast
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from first_uses import HARMLESS, KEEPING, KEPT, faults_of_kept, importers_of, kept_places, lazy_places, places_in

from dragoman import budget
from dragoman.serving.jobs import Jobs
from dragoman.serving.memory import TextCache
from dragoman.toolkits import choice
from dragoman.toolkits.choice import Engines
from limits import LONG_S

N = 4
"""Number of threads that come together."""


def together(use: Callable[[], Any]) -> list[Any]:
    """Return what ``use`` returns in each of ``N`` threads, which begin at the same time."""
    start = threading.Barrier(N)

    def wait_and_use(_: int) -> Any:
        start.wait(LONG_S)
        return use()

    with ThreadPoolExecutor(N) as threads:
        return list(threads.map(wait_and_use, range(N)))


class Slow:
    """Makes a thing slowly, so that others come meanwhile, and counts the calls."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make, self.n = make, 0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.n += 1
        time.sleep(0.05)
        return self.make(*arguments, **named)


def test_a_temporary_folder_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    make = Slow(tempfile.mkdtemp)
    monkeypatch.setattr(tempfile, "mkdtemp", make)
    jobs = Jobs(None)
    folders = together(lambda: jobs.folder)
    jobs.close()
    assert (make.n, len(set(folders))) == (1, 1)


def test_the_workers_of_a_process_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    make = Slow(budget.Workers)
    monkeypatch.setattr(budget, "Workers", make)
    budget.forget_shared()
    pools = together(budget.shared_workers)
    budget.forget_shared()
    assert (make.n, len(set(map(id, pools)))) == (1, 1)


def test_an_engine_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    load = Slow(lambda *_: SimpleNamespace(is_of=lambda models: True))
    monkeypatch.setattr(choice, "engine_class", lambda name: SimpleNamespace(loads_workers=False, load=load))
    engines = Engines(SimpleNamespace())  # type: ignore[arg-type]
    loaded = together(lambda: engines.get("torch", "fp32", 1))
    assert (load.n, len(set(map(id, loaded)))) == (1, 1)


def test_a_cache_counts_a_value_once_that_two_threads_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its count grows for ever, and it keeps one value in the end."""
    cache: TextCache[str] = TextCache(1000, 10)
    monkeypatch.setattr(cache, "pop", Slow(cache.pop))  # as long as another thread may take between two locks
    together(lambda: cache.put("key", "value", 100))
    assert (len(cache), cache.n_bytes) == (1, 100)


def test_every_lazy_place_holds_a_lock_or_has_a_reason() -> None:
    assert set(lazy_places()) == set(HARMLESS)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("if self._x is None:\n  self._x = make()", ["self._x"]),
        ("while not self._x:\n  self._x = make()", ["self._x"]),
        ("if key not in self._x:\n  self._x[key] = make()", ["self._x"]),
        ("known = self._x.get(key)\n if known is None:\n  known = self._x[key] = make()", ["self._x"]),
        ("global x\n if x is None:\n  x = make()", ["x"]),
        ("with self._lock:\n  if self._x is None:\n   self._x = make()", []),
        ("if self._x is None:\n  self._y = make()", []),
        ("if x is None:\n  x = make()", []),
    ],
)
def test_lazy_places_are_seen(code: str, names: list[str]) -> None:
    function = ast.parse(f"def use():\n {code}").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert list(places_in(function)) == names


def test_every_function_whose_answers_are_kept_only_answers_or_has_a_reason() -> None:
    assert set(kept_places()) == set(KEPT)


@pytest.mark.parametrize("library", KEEPING)
def test_a_library_that_keeps_all_it_was_asked_is_called_where_that_is_bounded(library: str) -> None:
    assert importers_of(library) == {KEEPING[library]}


@pytest.mark.parametrize(
    ("code", "faults"),
    [
        ("@cache\ndef f(n: int): return n + 1", []),
        ("@functools.lru_cache(8)\ndef f(text: str): return text.lower()", []),
        ("@cached_property\ndef f(self):\n names = []\n names.append(1)\n return names", []),
        ("def f(text: str): log.append(text)", []),
        ("@cache\ndef f(text: str): return text.lower()", ["grows"]),
        ("@functools.lru_cache(maxsize=None)\ndef f(texts: list[str]): return len(texts)", ["grows"]),
        ("@cached_property\ndef f(self):\n self.n += 1\n return 1", ["acts"]),
        ("@lru_cache\ndef f():\n threading.Thread(target=g).start()", ["acts"]),
        ("@cache\ndef f():\n global x\n x = 1", ["acts"]),
        ("@cache\ndef f(n: int):\n seen[n] = 1\n return 1", ["acts"]),
    ],
)
def test_faults_of_kept_answers_are_seen(code: str, faults: list[str]) -> None:
    function = ast.parse(code).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert list(faults_of_kept(function)) == faults
