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

from dragoman.errors import ConfigError

Result = TypeVar("Result")

logger = logging.getLogger(__name__)

PR_SET_PDEATHSIG = 1
"""Of prctl (https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html): a child ends with its parent."""

_LIBC: Any = ctypes.CDLL(None) if sys.platform == "linux" else None  # loaded before a fork

STOPPING = (signal.SIGINT, signal.SIGTERM)

BYSTANDERS = ("read-ahead", "ticker")
"""Threads of ours (``translation/streams.py``, ``progress.py``) that read text or show how far we are: they hold no
lock that a search would want."""


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
    if n_workers < 2:
        yield from (job() for job in jobs)
    elif processes and _may_fork():
        yield from _by_processes(jobs, n_workers)
    else:
        yield from _by_threads(jobs, n_workers)


def _may_fork() -> bool:
    """Whether a child of this process can count on what it inherits.

    A lock that another thread holds at that moment stays locked in the child for ever: that of oneDNN's compiled
    products, for one. So a program that has threads of its own is not forked, whatever they do; nor is one on a system
    whose libraries do not survive it (https://docs.python.org/3/library/os.html#os.fork).
    """
    own = {thread for thread in threading.enumerate() if thread.name not in BYSTANDERS}
    return sys.platform == "linux" and own == {threading.main_thread()} == {threading.current_thread()}


class _Child:
    """A forked process that does jobs by their number; ``job`` is the one that it has, None when it has none."""

    def __init__(self, jobs: Sequence[Callable[[], Any]]) -> None:
        """Fork.

        Raises:
            OSError: There is no room for another process.
        """
        self.connection, its_end = Pipe()
        self.job: int | None = None
        self.pid, parent = 0, os.getpid()
        kept = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)  # or the child might be told before it is one
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of other threads: see _may_fork
                self.pid = os.fork()
            if not self.pid:
                _serve(jobs, its_end, parent)
            its_end.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, kept)  # what came meanwhile is raised here
        except BaseException:
            signal.pthread_sigmask(signal.SIG_SETMASK, kept)
            if self.pid:
                self.end()
            raise

    def begin(self, job: int) -> None:
        """Give it a job; that it is dead ``answer`` tells."""
        self.job = job
        with contextlib.suppress(OSError):
            self.connection.send(job)

    def answer(self) -> tuple[bool, Any]:
        """Whether it has done its job, and what that returned; or the error, as text.

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


def _serve(jobs: Sequence[Callable[[], Any]], connection: Connection, parent: int) -> Never:
    """What a child does until its parent ends it, or is gone."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle, which ends its children
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it had gone by then
            os._exit(0)
        own = (0, 1, 2, connection.fileno())
        for file in {int(path.name) for path in Path("/proc/self/fd").iterdir()}.difference(own):
            with contextlib.suppress(OSError):
                os.close(file)  # it is the parent's: held open it would hold the parent's locks
        gc.freeze()  # what the parent has thrown away is not the child's to finish
        torch.set_num_threads(1)  # the threads of the parent's pool are not there
        while True:
            job = connection.recv()
            try:
                connection.send((True, jobs[job]()))
            except Exception as error:  # done again by the parent, so that it is raised where it can be handled
                connection.send((False, repr(error)))
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
