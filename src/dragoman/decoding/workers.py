"""Jobs done at once: by forked processes of one core each, or by threads where this process cannot be forked.

Threads share Python's lock. A search of a small model spends much of its time in Python, so two threads are hardly
faster than one; forked processes share nothing but the weights, which none of them writes to.
"""

from __future__ import annotations

import contextlib
import ctypes
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
from pathlib import Path
from typing import Any, Never, TypeVar, cast

import torch

from dragoman.decoding.request import checked_workers

Result = TypeVar("Result")

logger = logging.getLogger(__name__)

PR_SET_PDEATHSIG = 1
"""Option of prctl that ends a child with its parent (https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html)."""

_LIBC: Any = ctypes.CDLL(None) if sys.platform == "linux" else None  # loaded before a fork

BYSTANDERS = ("read-ahead", "ticker")
"""Threads of ours that read text (``translation/streams.py``) or show progress (``progress.py``). They hold no lock
that a search needs."""


def _has_one_thread() -> None:
    """Let a forked child of the program search with one thread: torch's others are not in it, and it would wait."""
    torch.set_num_threads(1)


os.register_at_fork(after_in_child=_has_one_thread)


def run_jobs(jobs: Sequence[Callable[[], Result]], workers: int, processes: bool = False) -> Iterator[Result]:
    """Run jobs, several at a time; yield their results, in order.

    Args:
        jobs: A single job, or all jobs of a single worker, run in this thread with as many cores as torch has.
        workers: Number of jobs at a time, with a core each.
        processes: Run them in processes where that is safe (see ``_may_fork``). Their results must bear to be pickled,
            and they must change nothing that is read later.

    Raises:
        ConfigError: ``workers`` is less than 1.
        Exception: The error of a job; jobs that have not begun are left out.
    """
    n_workers = min(checked_workers(workers), len(jobs))
    if n_workers < 2:
        yield from (job() for job in jobs)
    elif processes and _may_fork():
        yield from _by_processes(jobs, n_workers)
    else:
        yield from _by_threads(jobs, n_workers)


def _may_fork() -> bool:
    """Return True if this process can be forked safely.

    A lock that another thread holds at that moment stays locked in the child for ever: that of oneDNN's compiled
    products, for example. So a program that has threads of its own is not forked, whatever they do. Neither is one on a
    system whose libraries do not survive a fork (https://docs.python.org/3/library/os.html#os.fork).
    """
    own = {thread for thread in threading.enumerate() if thread.name not in BYSTANDERS}
    return sys.platform == "linux" and own == {threading.main_thread()} == {threading.current_thread()}


class _Child:
    """A forked process that does jobs by their number; ``job`` is its present one, None if it is idle."""

    def __init__(self, jobs: Sequence[Callable[[], Any]]) -> None:
        """Fork.

        Raises:
            OSError: There is no room for another process.
        """
        self.connection, its_end = Pipe()
        self.job: int | None = None
        self.pid, parent = 0, os.getpid()
        # Blocked until the child handles signals by itself: a handler of the program that raised in the child would let
        # it go on as a second copy of that program.
        unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of other threads: see _may_fork
                self.pid = os.fork()
            if not self.pid:
                _serve(jobs, its_end, parent, unblocked)
            its_end.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)  # a signal that came meanwhile is raised here
        except BaseException:
            signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
            if self.pid:
                self.end()
            raise

    def begin(self, job: int) -> None:
        """Give it a job; if it is dead, ``answer`` raises."""
        self.job = job
        with contextlib.suppress(OSError):
            self.connection.send(job)

    def answer(self) -> tuple[bool, Any]:
        """Return True and the result of its job; or False and the error, as text.

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


def _serve(
    jobs: Sequence[Callable[[], Any]], connection: Connection, parent: int, unblocked: set[int | signal.Signals]
) -> Never:
    """Do jobs in a child, until its parent ends it or is gone."""
    try:
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):  # Ctrl-C and others are the parent's to handle, once
                signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked - {signal.SIGTERM})
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended before prctl
            os._exit(0)
        own = (0, 1, 2, connection.fileno())
        for file in {int(path.name) for path in Path("/proc/self/fd").iterdir()}.difference(own):
            with contextlib.suppress(OSError):
                os.close(file)  # the parent's: an open file would hold the parent's locks
        gc.freeze()  # objects that the parent has thrown away are not finalised here
        torch.set_num_threads(1)  # a fork has none of the threads of the parent's pool
        while True:
            job = connection.recv()
            try:
                connection.send((True, jobs[job]()))
            except Exception as error:  # the parent does the job again, so the error is raised where it can be handled
                connection.send((False, repr(error)))
    finally:
        os._exit(0)  # without the parent's handlers of exit


def _by_processes(jobs: Sequence[Callable[[], Result]], n_workers: int) -> Iterator[Result]:
    waiting, results = iter(range(len(jobs))), dict[int, Result]()
    children: list[_Child] = []

    def give(child: _Child) -> None:
        job = next(waiting, None)
        if job is not None:
            child.begin(job)

    try:
        with contextlib.suppress(OSError):  # no memory for another process: fewer
            for _ in range(n_workers):
                children.append(_Child(jobs))
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
    """Wait for results; the parent does the job of a child that is dead."""
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
        elif not done:
            logger.warning("a worker process failed (%s); this one searches its batch", result)
        give(child)


def _by_threads(jobs: Sequence[Callable[[], Result]], n_workers: int) -> Iterator[Result]:
    ready = threading.Barrier(n_workers + 1)

    def take_one_core() -> None:
        torch.set_num_threads(1)
        ready.wait()

    pool = ThreadPoolExecutor(n_workers, "search", take_one_core)
    try:
        # each thread has its own number of cores, but a new thread begins with the number that any thread set last
        with _STARTING:
            n_threads = torch.get_num_threads()
            results = pool.map(lambda job: job(), jobs)
            ready.wait()
            torch.set_num_threads(n_threads)
        yield from results
    finally:
        ready.abort()
        pool.shutdown(cancel_futures=True)


_STARTING = threading.Lock()
"""Held while workers begin, when a thread of another caller would begin with their number of cores."""
