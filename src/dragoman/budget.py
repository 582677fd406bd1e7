"""Run functions on untrusted bytes in worker processes with budgets of memory, processor time and time.

    run_within(Budget(memory=1 << 30, cpu_s=60, wall_s=180), "report.docx", survey, data=data)

A worker is started when it is needed and kept for later calls. A worker that exceeds its budget, or dies, costs the one
call: it is killed and replaced. Workers end with this process, also after SIGKILL. Arguments and results travel as
JSON and raw bytes, never as pickles, so a worker that was taken over can send nothing but data.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import logging
import math
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
import zlib
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from dragoman import errors
from dragoman.errors import DataError, DragomanError

logger = logging.getLogger(__name__)

R = TypeVar("R")

IDLE_S = 600.0
"""Seconds without a call after which a worker ends."""

MOST_CALLS = 1000
"""Number of calls after which a worker is replaced, so that leaks of libraries do not add up."""

SPARE_BYTES = 64 << 20
"""Growth of a worker's address space after which it is replaced."""

PIECE_BYTES = 1 << 17
"""Size of a frame between two processes: decoding one keeps the interpreter for less than a few milliseconds."""

START_S = 120.0
"""Seconds in which a worker must have started."""

LIST_ITEM_BYTES = 64
"""Memory of a list's item besides its characters, for ``Budget.result``."""

Values = Mapping[str, Any]
"""Arguments or results by name: bytes, or what JSON holds. An iterator arrives as a list; it is read piece by piece."""


class StartError(DataError):
    """No worker can start."""

    shown = "no process can be started to parse with: the log says why"
    """Reason without names of files of this machine, for clients."""

    def __init__(self, why: Exception | str, advice: str = "end others, or try again later") -> None:
        super().__init__(f"no process can be started to parse with ({why}): {advice}")


class ReplacedError(StartError):
    """A worker has loaded another version of dragoman than this process, as after an upgrade: only a restart helps."""

    def __init__(self, module: str) -> None:
        self.shown = f"the files of dragoman were replaced while it ran ({module}): restart it"
        DataError.__init__(self, self.shown)


class StoppedError(DataError):
    """Somebody has stopped a worker during a call."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}: the process that parsed it was stopped: try again")


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of one call."""

    memory: int  # bytes of address space above those of an idle worker; not enforced on macOS
    cpu_s: int  # processor time in seconds
    wall_s: float  # seconds, from the start of the call in its worker
    result: int = 1 << 28  # bytes that the result may occupy in this process
    advice: str = "split it, or save it again"  # for who meets a limit


@dataclass(frozen=True, eq=False)
class _Call:
    """A function with its arguments, waiting for a worker."""

    budget: Budget
    name: str  # of the file or text, for messages
    function: str  # module:name
    arguments: Values
    owner: str
    result: Future[dict[str, Any]]


class Workers:
    """A pool of worker processes; each is driven by a thread of its own, so waiting blocks no other thread."""

    def __init__(
        self, count: int, *, preload: str = "", niceness: int = 0, short_s: float = 0.0,
        tell: Callable[[str], object] = lambda reason: None,
    ) -> None:  # fmt: skip
        """Start nothing yet.

        Args:
            count: Largest number of processes. One owner has at most all but one of them, and at least one.
            preload: Module that a worker imports when it starts.
            niceness: How much the workers yield the processor to others, 0 to 19.
            short_s: Seconds of a call after which its worker begins to yield, on Linux; elsewhere it always does.
            tell: Called with the reason why no worker can be started, once until one can.
        """
        self._count, self._preload, self._manners = count, preload, (niceness, short_s)
        self._lock = threading.Condition()
        self._waiting: OrderedDict[str, deque[_Call]] = OrderedDict()  # by owner; the next turn comes first
        self._running: Counter[str] = Counter()  # by owner
        self._threads, self._idle, self._is_closed = 0, 0, False
        self._tell, self._told, self._processes = tell, "", 0
        self._error: StartError | None = None  # of the last start

    def submit(
        self, budget: Budget, name: str, function: Callable[..., Values], /, *, owner: str = "", **arguments: Any
    ) -> Future[dict[str, Any]]:
        """Call ``function(**arguments)`` in a worker; owners take turns.

        Args:
            budget: Limits of the call.
            name: Name of the file or text, for messages.
            function: Top-level function of a module, which returns values by name.
            owner: Client for whom the call is made.

        Returns:
            The future result. Its exceptions are those of dragoman that the function raised; DataError if a limit was
            exceeded or the worker died; StartError if none could be started; StoppedError if the worker was stopped;
            RuntimeError with the worker's traceback for any other exception.
        """
        call = _Call(budget, name, f"{function.__module__}:{function.__qualname__}", arguments, owner, Future())
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the workers are closed")
            # An idle thread counts until it has the lock again, so several calls may find the same one.
            if 1 + sum(map(len, self._waiting.values())) > self._idle and self._threads < self._count:
                self._start_thread()
            self._waiting.setdefault(owner, deque()).append(call)
            self._lock.notify()
        # By its owner: a future keeps its callbacks, and with the call in one also the arguments.
        call.result.add_done_callback(partial(self._forget_cancelled, owner))
        return call.result

    def run(
        self, budget: Budget, name: str, function: Callable[..., Values], /, *, owner: str = "", **arguments: Any
    ) -> dict[str, Any]:
        """Return the result of ``submit``."""
        return self.submit(budget, name, function, owner=owner, **arguments).result()

    def n_waiting(self, owner: str) -> int:
        """Return the number of calls of an owner that wait for a worker."""
        with self._lock:
            return len(self._waiting.get(owner, ()))

    def close(self) -> None:
        """End idle workers now and busy ones after their call; calls that wait fail."""
        with self._lock:
            self._is_closed = True
            calls = [call for queue in self._waiting.values() for call in queue]
            self._waiting.clear()
            self._lock.notify_all()
        for call in calls:
            call.result.cancel()

    def _forget_cancelled(self, owner: str, result: Future[dict[str, Any]]) -> None:
        """Take a call that nobody waits for out of the queue, with its arguments, which may be large."""
        if not result.cancelled():
            return
        with self._lock:
            calls = self._waiting.get(owner, deque())
            call = next((call for call in calls if call.result is result), None)
            if call is None:  # a thread has taken it, or all have been cancelled
                return
            calls.remove(call)
            if not calls:
                del self._waiting[owner]

    def _drive(self) -> None:
        """Take calls and run them in one process, until there is nothing to do for ``IDLE_S``."""
        process: _Process | None = None
        is_counted = True
        try:
            while (call := self._take()) is not None:
                if not call.result.set_running_or_notify_cancel():
                    self._finished(call)
                    del call  # it may be large, and the next one may come in ten minutes
                    continue
                outcome: dict[str, Any] | BaseException
                try:
                    if process is None or not process.is_usable():
                        self._end(process)
                        process = None
                        process = self._started()
                    outcome, is_sound = process.run(call), True
                except BaseException as error:
                    outcome, is_sound = error, False
                    if isinstance(error, StartError):
                        self._note(error)
                    _clear_frames(error)
                try:
                    if not is_sound:
                        self._end(process)
                        process = None
                finally:
                    try:
                        self._finished(call)
                    finally:
                        if isinstance(outcome, BaseException):
                            call.result.set_exception(outcome)
                        else:
                            call.result.set_result(outcome)
                del call, outcome
            is_counted = False
        finally:
            try:
                if is_counted:  # it dies, perhaps for want of memory: another thread goes on
                    with self._lock:
                        self._threads -= 1
                        if self._waiting and not self._is_closed:
                            self._start_thread()
            finally:
                self._end(process)

    @property
    def problem(self) -> str:
        """Reason why there is no worker and none can be started, or only others than these: as ``StartError.shown``."""
        error = self._error
        return "" if error is None or (self._processes and not isinstance(error, ReplacedError)) else error.shown

    def _note(self, error: StartError) -> None:
        self._error = error
        if str(error) != self._told:  # each call tries it again
            self._told = str(error)
            self._tell(self._told)

    def _started(self) -> _Process:
        process = _Process(self._preload, self._manners)
        with self._lock:
            self._processes += 1
        self._error, self._told = None, ""
        return process

    def _end(self, process: _Process | None) -> None:
        """End a process, if there is one."""
        if process is not None:
            process.end()
            with self._lock:
                self._processes -= 1

    def _start_thread(self) -> None:
        """Start one thread more, unless the system allows none and others go on.

        Raises:
            StartError: There is no thread at all.
        """
        try:
            threading.Thread(target=self._drive, name="worker-driver", daemon=True).start()
        except RuntimeError as error:
            if not self._threads:
                start_error = StartError(error)
                self._note(start_error)
                raise start_error from None
        else:
            self._threads += 1

    def _take(self) -> _Call | None:
        """Return the next call; None if the thread should end."""
        most = max(1, self._count - 1)
        until = time.monotonic() + IDLE_S
        with self._lock:
            while True:
                for owner, calls in self._waiting.items():
                    if self._running[owner] < most:
                        self._running[owner] += 1
                        call = calls.popleft()
                        self._waiting.move_to_end(owner)
                        if not calls:
                            del self._waiting[owner]
                        return call
                left_s = until - time.monotonic()
                if self._is_closed or left_s <= 0:
                    self._threads -= 1
                    return None
                self._idle += 1
                try:
                    self._lock.wait(left_s)
                finally:
                    self._idle -= 1

    def _finished(self, call: _Call) -> None:
        with self._lock:
            self._running[call.owner] -= 1
            if not self._running[call.owner]:
                del self._running[call.owner]
            self._lock.notify()  # a call of this owner may have waited for its turn


_shared: Workers | None = None
_sharing = threading.Lock()


def shared_workers() -> Workers:
    """Return the workers of this process for the command line and Python."""
    global _shared
    with _sharing:  # first calls that come together must not make some each
        if _shared is None:
            _shared = Workers(2)
        return _shared


def run_within(budget: Budget, name: str, function: Callable[..., Values], /, **arguments: Any) -> dict[str, Any]:
    """Return ``function(**arguments)``, called in a worker of this process; see ``Workers.submit``."""
    return shared_workers().run(budget, name, function, **arguments)


def forget_shared() -> None:
    """Forget the workers in a forked child, which has none of their threads."""
    global _shared, _sharing
    _shared, _sharing = None, threading.Lock()  # another thread may have held it


os.register_at_fork(after_in_child=forget_shared)


# --- the process that calls -------------------------------------------------------------------------------------------

BOOTSTRAP = """
import json, sys
fd, manners, preload, sys.path[:] = json.loads(sys.argv[1])
from dragoman.budget import work
work(fd, *manners, preload)
"""


INTERPRETER = "sys.executable must be a Python interpreter that can import dragoman"
"""Advice where the interpreter is at fault, not the system."""


class _Process:
    """One worker process, used by one thread."""

    def __init__(self, preload: str, manners: tuple[int, float]) -> None:
        known_sums()  # before the worker reads the files
        with contextlib.suppress(OSError):  # no file, as in an archive; or it is gone, which the start tells
            # A worker of another version might never say that it is ready.
            _refuse_replaced({__name__: _sum_of(__name__)})
        if not sys.executable:  # as in a program that embeds Python
            raise StartError("sys.executable names no program", INTERPRETER)
        try:
            here, there = socket.socketpair()
        except OSError as error:
            raise StartError(error) from None
        with there:
            path = [entry for entry in sys.path if isinstance(entry, str)]  # Python skips all others
            start = json.dumps([there.fileno(), manners, preload, path])
            # One thread for NumPy, one arena for malloc: more reserve address space, which counts against the budget.
            one_each = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MALLOC_ARENA_MAX")
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-c", BOOTSTRAP, start], pass_fds=[there.fileno()],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    env=os.environ | dict.fromkeys(one_each, "1"),
                )  # fmt: skip
            except OSError as error:
                here.close()
                # With a name it is an error of the program, else of the system.
                raise (StartError(error, INTERPRETER) if error.filename else StartError(error)) from None
        self._socket, self._n_calls, self._is_worn = here, 0, False
        try:
            _refuse_replaced(_receive(here, time.monotonic() + START_S, 1 << 20)["loaded"])
        except (OSError, EOFError) as error:
            is_late = isinstance(error, TimeoutError)
            how = f"is not ready after {START_S:g} seconds" if is_late else f"died at its start: {self._death_shown()}"
            self.end()
            raise StartError(f"{sys.executable} {how}", f"{INTERPRETER}; or try again later") from None
        except BaseException:
            self.end()
            raise

    def is_usable(self) -> bool:
        """True if the process lives and should not be replaced."""
        is_alive = self._process.poll() is None and not self._was_stopped()
        return is_alive and not self._is_worn and self._n_calls < MOST_CALLS

    def _was_stopped(self) -> bool:
        """Return True if somebody has stopped the process (SIGSTOP), even if it runs again."""
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return False
        with contextlib.suppress(ChildProcessError):  # it has ended
            changes = os.WSTOPPED | os.WCONTINUED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self._process.pid, changes) is not None
        return False

    def run(self, call: _Call) -> dict[str, Any] | DragomanError:
        """Run a call; return its values, or the error of dragoman that it raised.

        Raises:
            DataError: The call exceeded its budget, or the process died. The process must be replaced, as after any
                other exception.
            StoppedError: The process was stopped, so the time says nothing of the call.
            StartError: A part of dragoman cannot be loaded now, or was replaced.
        """
        self._n_calls += 1
        budget = call.budget
        until = time.monotonic() + budget.wall_s
        head = {"function": call.function, "memory": budget.memory, "cpu_s": budget.cpu_s}
        try:
            _send(self._socket, {"call": head, **call.arguments}, until)
            values = _receive(self._socket, until, budget.result)
        except TimeoutError:
            if self._was_stopped():
                raise StoppedError(call.name) from None
            raise _overrun(call, f"{budget.wall_s:g} seconds") from None
        except _TooMuchError:
            raise _overrun(call, f"{budget.result >> 20:,} MiB for its texts") from None
        except (OSError, EOFError):
            raise self._death(call) from None
        outcome = values.pop("outcome")
        self._is_worn = outcome["worn"]
        _refuse_replaced(outcome["loaded"])
        if outcome["error"] is None:
            return values
        kind, message = outcome["error"]
        if kind == "MemoryError":
            raise _overrun(call, f"{budget.memory >> 20:,} MiB of memory")
        if kind == "ImportError":
            raise StartError(message, f"{INTERPRETER}; or try again later")
        if kind == "RecursionError":
            return DataError(f"{call.name}: its elements are nested too deeply: write it with fewer levels")
        error = getattr(errors, kind, None)
        if isinstance(error, type) and issubclass(error, DragomanError):
            return error(message)
        raise RuntimeError(f"the worker that parses {call.name} failed:\n{message}")

    def _death(self, call: _Call) -> DataError:
        """Return the error for a process that died during a call."""
        how = self._death_shown()
        if self._process.poll() == -signal.SIGXCPU:
            return _overrun(call, f"{call.budget.cpu_s} seconds of processor time")
        return DataError(f"{call.name}: the process that parsed it died ({how}): {call.budget.advice}")

    def _death_shown(self) -> str:
        """Return the signal or the exit code of a process that has closed its socket, for messages."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        status = self._process.poll()
        return f"signal {-status}" if status is not None and status < 0 else f"exit code {status}"

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()
        self._socket.close()


def _clear_frames(error: BaseException | None) -> None:
    """Let go of what the functions held that raised an error: its call, with the arguments, has the error too."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def _refuse_replaced(loaded: Mapping[str, int]) -> None:
    """Check that a worker has loaded the same modules of dragoman as this process.

    Else a document could be read by one version and written by another, which cuts its text into other units.

    Args:
        loaded: Sums of the files of its modules, by module.

    Raises:
        ReplacedError: A file has changed.
    """
    for module, file_sum in loaded.items():
        if known_sums().setdefault(module, file_sum) != file_sum:  # of a module that only workers load: the first one
            raise ReplacedError(module)


@cache
def known_sums() -> dict[str, int]:
    """Return the sums of the files of this process's modules as they were when its first worker started."""
    return _sums_of_new(set())


def _sums_of_new(seen: set[str]) -> dict[str, int]:
    """Return the checksums of the files of dragoman's modules that are loaded and not in ``seen``, and add them there.

    A module without a file of its own, as in an archive, has none.
    """
    new = sys.modules.keys() - seen
    seen |= new
    sums = {}
    for name in sorted(new):
        if name.partition(".")[0] == "dragoman":
            with contextlib.suppress(OSError):
                sums[name] = _sum_of(name)
    return sums


def _sum_of(module: str) -> int:
    return zlib.crc32(Path(getattr(sys.modules.get(module), "__file__", None) or "").read_bytes())


def _overrun(call: _Call, limit: str) -> DataError:
    return DataError(f"{call.name}: parsing it takes more than {limit}, the limit: {call.budget.advice}")


# --- frames -----------------------------------------------------------------------------------------------------------

_HEAD = struct.Struct("!cI")  # kind, length: "b" bytes, "l" items of a list, "v" another value, "n" a name, "." the end


class _TooMuchError(Exception):
    """The values need more memory than they may."""


def _frames(values: Values) -> Iterator[tuple[bytes, bytes | memoryview]]:
    """Yield values by name as frames of about ``PIECE_BYTES``."""
    for name, value in values.items():
        kind = b"b" if isinstance(value, bytes) else b"l" if isinstance(value, list | Iterator) else b"v"
        yield b"n", json.dumps([name, kind.decode()]).encode()
        if isinstance(value, bytes):
            for start in range(0, len(value), PIECE_BYTES):
                yield kind, memoryview(value)[start : start + PIECE_BYTES]
        elif kind == b"l":
            pieces, size = [], 0
            for part in value:
                pieces.append(json.dumps(part))
                size += len(pieces[-1]) + 2
                if size > PIECE_BYTES:
                    yield kind, f"[{','.join(pieces)}]".encode()
                    pieces, size = [], 0
            yield kind, f"[{','.join(pieces)}]".encode()
        else:
            yield kind, json.dumps(value).encode()
    yield b".", b""


def _send(to: socket.socket, values: Values, until: float) -> None:
    for kind, content in _frames(values):
        to.settimeout(_left(until))
        to.sendall(_HEAD.pack(kind, len(content)))
        to.sendall(content)


def _receive(source: socket.socket, until: float, most: int) -> dict[str, Any]:
    """Return the values that ``_send`` wrote at the other end.

    Raises:
        _TooMuchError: They need more than ``most`` bytes.
        EOFError: The other end was closed.
        TimeoutError: The time is over.
    """
    values: dict[str, Any] = {}
    name, size = "", 0
    blobs: list[bytes] = []
    while True:
        kind, length = _HEAD.unpack(_exactly(source, _HEAD.size, until))
        size += length
        if size > most:
            raise _TooMuchError
        content = _exactly(source, length, until)
        if kind in (b"n", b".") and isinstance(values.get(name), bytes):
            values[name], blobs = b"".join(blobs), []
        if kind == b".":
            return values
        if kind == b"b":
            blobs.append(content)
        elif kind == b"n":
            name, type_ = json.loads(content)
            values[name] = {"b": b"", "l": []}.get(type_)
        elif kind == b"l":
            items = json.loads(content)
            size += LIST_ITEM_BYTES * len(items)
            values[name] += items
        else:
            values[name] = json.loads(content)


def _exactly(source: socket.socket, length: int, until: float) -> bytes:
    content = bytearray()
    while len(content) < length:
        source.settimeout(_left(until))
        piece = source.recv(min(1 << 20, length - len(content)))
        if not piece:
            raise EOFError
        content += piece
    return bytes(content)


def _left(until: float) -> float | None:
    """Return the seconds until a moment; None if there is no limit."""
    if math.isinf(until):
        return None
    if (left_s := until - time.monotonic()) <= 0:
        raise TimeoutError
    return left_s


# --- the worker -------------------------------------------------------------------------------------------------------

PR_SET_PDEATHSIG = 1


def work(fd: int, niceness: int, short_s: float, preload: str) -> NoReturn:
    """Run calls until the process that started this one ends; the main function of a worker."""
    import resource  # not every system has it

    # Ctrl-C, and a service manager's SIGTERM, go to the whole group: the other process decides when this one ends.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":  # without it, a busy worker outlives a killed process until its budget is used up
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # When memory is short, the system ends a worker, which costs one call, and not the process that started it.
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "linux":
        short_s = 0.0  # only Linux has a niceness for each thread
    if not short_s:
        os.nice(niceness)
    if preload:
        importlib.import_module(preload)
    _in_a_thread(int, niceness, short_s)  # its stack is kept for the next ones
    at_start = _address_space()
    with socket.socket(fileno=fd) as caller:
        modules: set[str] = set()
        _send(caller, {"loaded": _sums_of_new(modules)}, math.inf)
        while True:
            try:
                caller.settimeout(None)
                caller.recv(1, socket.MSG_PEEK)  # sleep here: the budget counts from the first byte
                budget_end = math.inf
                with _limited():
                    call = _receive(caller, budget_end, sys.maxsize)
                    outcome, values = _in_a_thread(partial(_called, call), niceness, short_s)
                outcome["loaded"] = _sums_of_new(modules)
                outcome["worn"] = _address_space() > at_start + SPARE_BYTES
                _send(caller, {**values, "outcome": outcome}, budget_end)
                del call, values
            except (EOFError, OSError):
                os._exit(0)


def _in_a_thread(function: Callable[[], R], niceness: int, short_s: float) -> R:
    """Call ``function``; after ``short_s`` seconds, if they are not 0, it yields the processor to others.

    A process without privileges cannot take its niceness back, so a thread that ends with the call gets it.
    """
    if not short_s:
        return function()
    results: list[R] = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join(short_s)
    if thread.is_alive():
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.setpriority(os.PRIO_PROCESS, thread.native_id or 0, min(19, os.nice(0) + niceness))
    thread.join()
    return results[0]


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Take the limits of a call away at its end."""
    import resource

    try:
        yield
    finally:
        for which in (resource.RLIMIT_AS, resource.RLIMIT_CPU):
            hard = resource.getrlimit(which)[1]
            resource.setrlimit(which, (hard, hard))


def _called(values: dict[str, Any]) -> tuple[dict[str, Any], Values]:
    """Run a call within its limits; return its outcome and the values of its function."""
    head = values.pop("call")
    try:
        module, _, name = head["function"].partition(":")
        function = getattr(importlib.import_module(module), name)
        _limit(head["memory"], head["cpu_s"])
        return {"error": None}, function(**values)
    except (MemoryError, RecursionError) as error:
        return {"error": [type(error).__name__, ""]}, {}
    except DragomanError as error:
        kind = next(kind.__name__ for kind in type(error).__mro__ if getattr(errors, kind.__name__, None) is kind)
        return {"error": [kind, str(error)]}, {}
    except BaseException as error:
        if isinstance(error, ImportError) and str(error.name).partition(".")[0] == "dragoman":  # it is being upgraded
            return {"error": ["ImportError", str(error)]}, {}
        return {"error": ["", traceback.format_exc()]}, {}


def _limit(memory: int, cpu_s: int) -> None:
    """Limit this process: its address space grows by ``memory`` bytes at most, and it computes for ``cpu_s``."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = math.ceil(time.process_time()) + cpu_s
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))
    if sys.platform == "linux":  # macOS has no limit that its kernel enforces
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = _address_space() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _address_space() -> int:
    """Return the size of this process's address space in bytes; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  (no allocation of a path)
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
