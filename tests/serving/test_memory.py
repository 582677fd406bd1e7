"""Memory of a server: what is trimmed and when, which malloc is left alone, and caches that cannot grow."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.serving import memory
from dragoman.serving.glossaries import Dictionary, Glossaries
from dragoman.serving.memory import BUSY_S, QUIET_S, TextCache, Trimmer, bound_arenas, trim
from dragoman.serving.pairs import Pairs
from dragoman.serving.service import MOST_PLAN_BYTES, Service
from dragoman.translation.options import TranslateOptions
from dragoman.translation.translator import Translator

HAS_GLIBC = sys.platform == "linux" and "glibc" in os.confstr("CS_GNU_LIBC_VERSION")  # type: ignore[operator]


def test_memory_is_trimmed_once_after_work_and_at_intervals_while_there_is_work() -> None:
    work, trimmed = [0, False], []
    trimmer = Trimmer(lambda: (work[0], bool(work[1])), lambda: trimmed.append(work[0]))
    for _ in range(int(QUIET_S) - 1):
        trimmer.look(1.0)
    work[:] = 1, False
    trimmer.look(1.0)
    for _ in range(int(QUIET_S)):
        assert trimmed == []  # it has just worked
        trimmer.look(1.0)
    assert trimmed == [1]
    for _ in range(int(BUSY_S) - 1):
        trimmer.look(1.0)
    assert trimmed == [1]  # nothing to do: only at the interval
    for _ in range(3 * int(BUSY_S)):
        work[:] = work[0] + 1, True
        trimmer.look(1.0)
    assert len(trimmed) == 4


@pytest.mark.parametrize("libc", [None, SimpleNamespace(), SimpleNamespace(mallopt=lambda *_: 1)])
def test_a_malloc_that_has_no_such_settings_is_left_alone(libc: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "libc", lambda: libc)
    assert not bound_arenas(3)
    assert not trim()


@pytest.mark.skipif(not HAS_GLIBC, reason="measures glibc's malloc")
def test_free_memory_goes_back_and_threads_share_arenas() -> None:
    code = """
import ctypes, re, sys, threading
from pathlib import Path
from dragoman.serving.memory import bound_arenas, trim
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def rss():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
assert bound_arenas(2)
def use():
    blocks = [libc.malloc(60_000) for _ in range(200)]  # below the threshold of mmap
    for block in blocks:
        ctypes.memset(block, 1, 60_000)
    last = libc.malloc(1000)  # nothing below it can be returned by free alone
    together.wait()  # however fast the threads are, all blocks exist at once
    for block in blocks:
        libc.free(block)
    together.wait()
together = threading.Barrier(9)
threads = [threading.Thread(target=use) for _ in range(8)]
before = rss()
for thread in threads:
    thread.start()
together.wait()
together.wait()
for thread in threads:
    thread.join()
after = rss()
assert trim()
print(after - before, after - rss())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    grown, returned = map(int, done.stdout.split())
    assert grown > 20  # the test has made free memory: otherwise it would show nothing
    assert returned > grown // 2


def test_a_cache_of_texts_keeps_the_last_ones_within_its_bytes() -> None:
    cache: TextCache[str] = TextCache(10, 3)
    cache.put("a", "A", 4)
    cache.put("b", "B", 4)
    assert cache.get("a") == "A"
    cache.put("c", "C", 4)
    assert (cache.get("b"), cache.get("a"), cache.get("c")) == (None, "A", "C")
    cache.put("a", "A2", 1)  # again, and smaller
    cache.put("d", "D", 1)
    cache.put("e", "E", 1)
    assert (len(cache), cache.n_bytes) == (3, 3)
    cache.put("huge", "H", 100)
    assert (cache.get("huge"), len(cache)) == ("H", 1)
    cache.pop("huge")
    cache.pop("huge")
    assert (len(cache), cache.n_bytes) == (0, 0)


def test_plans_of_requests_with_large_glossaries_are_not_kept(served: Translator) -> None:
    limits: Any = SimpleNamespace(beam=16)
    service = Service(Pairs([served]), None, limits, TranslateOptions(threads=1))  # type: ignore[arg-type]
    pair = next(iter(service.pairs))
    plain = service.plan(pair, service.defaults)
    assert service.plan(pair, service.defaults) is plain
    for number in range(6):
        terms = {f"term {number} {i:09}": "a" * 20 for i in range(MOST_PLAN_BYTES // 1000)}
        service.plan(pair, TranslateOptions(threads=1, glossary=terms))
    assert service.plans.n_bytes <= MOST_PLAN_BYTES
    assert len(service.plans) < 6


TERMS: dict[str, dict[str, str]] = {
    "letters": {f"{i:04x}": f"{i:x}" for i in range(10_000)},
    "words": {f"term {i:06}": f"Begriff {i:06}" for i in range(10_000)},
    "Chinese": {f"{i:04}\u7684\u8bcd": f"{i}\u8bcd\u6c47" for i in range(10_000)},
    "long": {f"term {i:06} {'x' * 400}": "y" * 400 for i in range(2_000)},
}


@pytest.mark.parametrize("kind", TERMS)
@pytest.mark.parametrize("as_text", [False, True])
def test_a_plan_takes_as_many_bytes_as_it_counts_for(served: Translator, kind: str, as_text: bool) -> None:
    limits: Any = SimpleNamespace(beam=16)
    service = Service(Pairs([served]), None, limits, TranslateOptions(threads=1))  # type: ignore[arg-type]
    pair = next(iter(service.pairs))
    service.plan(pair, service.defaults)  # loads what all plans share
    before = service.plans.n_bytes
    text = "\n".join(f"{src} = {tgt}" for src, tgt in TERMS[kind].items())

    def plan() -> None:
        terms = text + "\n" if as_text else {src[:]: tgt[:] for src, tgt in json.loads(json.dumps(TERMS[kind])).items()}
        service.plan(pair, TranslateOptions(threads=1, glossary=terms))

    taken = traced(plan)
    assert taken / 2 < service.plans.n_bytes - before < 2 * taken


@pytest.mark.parametrize("kind", TERMS)
def test_a_stored_glossary_takes_as_many_bytes_as_it_counts_for(tmp_path: Path, kind: str) -> None:
    stored = Glossaries(tmp_path)
    made = Glossaries(tmp_path).add("", "g", [Dictionary("en", "de", TERMS[kind])])
    taken = traced(lambda: stored.get(made.id, ""))
    assert taken / 2 < stored.kept.n_bytes < 2 * taken


def traced(work: Callable[[], object]) -> int:
    """Return the bytes that are still in use after some work."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
