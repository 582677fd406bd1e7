"""Jobs done at once: by forked processes of one core each, or by threads where this process cannot be forked.

Threads share Python's lock. A search of a small model spends much of its time in Python, so two threads are hardly
faster than one; forked processes share nothing but the weights, which none of them writes to.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Never, TypeVar, cast

import torch

from dragoman.errors import ConfigError

Result = TypeVar("Result")

logger = logging.getLogger(__name__)

STOPPING = (signal.SIGINT, signal.SIGTERM)


def checked_workers(workers: int) -> int:
    """The number of batches searched at a time.

    Raises:
        ConfigError: It is less than 1.
    """
    if workers < 1:
        raise ConfigError(f"workers = {workers} must be 1 or more")
    return workers


def run_jobs(jobs: Sequence[Callable[[], Result]], workers: int, processes: bool = False) -> Iterator[Result]:
    """Run jobs, several at a time; yields what they return, in order.

    Args:
        jobs: A single job, or all of a single worker, run here, with as many cores as torch has been given.
        workers: How many at a time, with a core each.
        processes: Run them in processes where that is safe (see ``_may_fork``): what they return can be pickled, and
            they change nothing that is looked at later.

    Raises:
        ConfigError: ``workers`` is less than 1.
        Exception: Whatever a job raises; those not yet begun are left.
    """
    n_workers = min(checked_workers(workers), len(jobs))
    with _busy():
        if n_workers < 2:
            yield from (job() for job in jobs)
        elif processes and _may_fork():
            yield from _by_processes(jobs, n_workers)
        else:
            yield from _by_threads(jobs, n_workers)


_LOCK = threading.Lock()
_n_busy = 0  # calls of run_jobs that are under way


@contextlib.contextmanager
def _busy() -> Iterator[None]:
    global _n_busy
    with _LOCK:
        _n_busy += 1
    try:
        yield
    finally:
        with _LOCK:
            _n_busy -= 1


def _may_fork() -> bool:
    """Whether a child of this process can count on what it inherits.

    A lock that another thread holds at that moment stays locked in the child for ever. So a program that translates
    from threads of its own, or from two at once, is not forked; nor is one on a system whose libraries do not
    survive it (https://docs.python.org/3/library/os.html#os.fork).
    """
    return sys.platform == "linux" and threading.current_thread() is threading.main_thread() and _n_busy == 1


class _Child:
    """A forked process that does jobs by their number; ``job`` is the one that it has, None when it has none."""

    def __init__(self, jobs: Sequence[Callable[[], Any]], before: Sequence[_Child]) -> None:
        """``before``: those that were forked before it.

        Raises:
            OSError: There is no room for another process.
        """
        self.connection, its_end = Pipe()
        self.job: int | None = None
        kept = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)  # or the child might be told before it is one
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of other threads: see _may_fork
                self.pid = os.fork()
            if not self.pid:
                _serve(jobs, its_end, [one.connection for one in (*before, self)])
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, kept)
        its_end.close()

    def begin(self, job: int) -> None:
        """Give it a job; that it is dead ``answer`` tells."""
        self.job = job
        with contextlib.suppress(OSError):
            self.connection.send(job)

    def answer(self) -> tuple[bool, Any]:
        """Whether it has done its job, and what that returned.

        Raises:
            EOFError, OSError: It is dead.
        """
        self.job = None
        done, result = self.connection.recv()
        return done, result

    def end(self) -> None:
        """Stop it, whatever it does."""
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(self.pid, 0)
        self.connection.close()


def _serve(jobs: Sequence[Callable[[], Any]], connection: Connection, not_its_own: Sequence[Connection]) -> Never:
    """What a child does until its parent ends it, or is gone."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle, which ends its children
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        for other in not_its_own:  # held open, they would keep others from seeing that the parent is gone
            other.close()
        gc.freeze()  # what the parent has thrown away is not the child's to finish
        torch.set_num_threads(1)  # the threads of the parent's pool are not there
        while True:
            job = connection.recv()
            try:
                answer = True, jobs[job]()
            except Exception:  # done again by the parent, so that it is raised where it can be handled
                answer = False, None
            connection.send(answer)
    finally:
        os._exit(0)  # nothing that the parent will do at its end is done here


def _by_processes(jobs: Sequence[Callable[[], Result]], n_workers: int) -> Iterator[Result]:
    waiting, results = iter(range(len(jobs))), dict[int, Result]()
    children: list[_Child] = []

    def give(child: _Child) -> None:
        job = next(waiting, None)
        if job is not None:
            child.begin(job)

    try:
        with contextlib.suppress(OSError):  # no room: fewer
            for _ in range(n_workers):
                children.append(_Child(jobs, children))
        for child in children:
            give(child)
        for wanted in range(len(jobs)):
            while wanted not in results and any(child.job == wanted for child in children):
                _collect(children, results, give)
            yield results.pop(wanted) if wanted in results else jobs[wanted]()
    finally:
        for child in children:
            child.end()


def _collect(children: list[_Child], results: dict[int, Any], give: Callable[[_Child], None]) -> None:
    """Wait for results; a child that is dead is forgotten, and its job is the parent's."""
    at_work = {child.connection: child for child in children if child.job is not None}
    for connection in wait(list(at_work)):
        child = at_work[cast("Connection", connection)]
        job = child.job
        try:
            done, result = child.answer()
        except (EOFError, OSError):
            logger.warning("a worker process died (out of memory?); this one searches its batch")
            children.remove(child)
            child.end()
            continue
        if done and job is not None:
            results[job] = result
        give(child)


def _by_threads(jobs: Sequence[Callable[[], Result]], n_workers: int) -> Iterator[Result]:
    ready = threading.Barrier(n_workers + 1)

    def take_one_core() -> None:
        torch.set_num_threads(1)
        ready.wait()

    pool = ThreadPoolExecutor(n_workers, "search", take_one_core)
    try:
        with _STARTING:  # the number is a thread's own, but one that begins is given what was set last, by whomever
            n_threads = torch.get_num_threads()  # this one may have begun just now
            found = pool.map(lambda job: job(), jobs)
            ready.wait()
            torch.set_num_threads(n_threads)
        yield from found
    finally:
        ready.abort()
        pool.shutdown(cancel_futures=True)


_STARTING = threading.Lock()
"""Held while workers begin, when a thread of another caller would be given their number of cores."""
