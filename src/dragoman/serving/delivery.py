"""Answer with the translation of a document, which counts as fetched once its client has received it whole."""

from __future__ import annotations

import contextlib
import re
import stat
from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.types import Message, Receive, Scope, Send

from dragoman.serving.jobs import Job, Jobs
from dragoman.serving.refusals import UnknownError
from dragoman.serving.storage import storing

_RANGE = re.compile(rb"bytes=(\d{0,18})-(\d{0,18})")


class Delivery(FileResponse):
    """Translation of a finished job, as a file."""

    def __init__(self, jobs: Jobs, job: Job) -> None:
        """Answer with the translation of ``job``.

        Raises:
            UnknownError: The job went while room was short.
            UnstorableError: The translation cannot be read now.
        """
        with _reading():
            path = jobs.result(job)
            state = path.lstat()
        if not stat.S_ISREG(state.st_mode):  # a link would lead to another file of this machine
            raise UnknownError("document not found")
        # A cache between must not keep it: its address alone gives it to whoever has it.
        headers = {"cache-control": "private, no-store"}
        super().__init__(
            path, headers=headers, media_type="application/octet-stream", filename=job.name, stat_result=state
        )
        self._jobs, self._job, self._n_bytes = jobs, job, state.st_size

    def _has(self, ranges: bytes) -> bool:
        """Return True if a header names one range of bytes that the file has."""
        found = _RANGE.fullmatch(ranges)
        if found is None:
            return False
        first, last = found[1], found[2]
        if not first:
            return int(last or 0) > 0
        return int(first) < self._n_bytes and (not last or int(first) <= int(last))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file, and mark the job unless the client left before the end, or got a part, or no body."""
        # The routes take a HEAD for a GET. A range that the file does not have, and several, may be ignored (RFC 9110).
        headers = [header for header in scope["headers"] if header[0] != b"range" or self._has(header[1])]
        scope = {**scope, "method": "HEAD" if scope["is_head"] else scope["method"], "headers": headers}
        whole, starts = False, list[Message]()

        async def marking(message: Message) -> None:
            nonlocal whole
            if message["type"] == "http.response.start":
                n_bytes = int(dict(message["headers"])[b"content-length"])
                whole = not scope["is_head"] and n_bytes == self._n_bytes
                # Held back until the file was opened and its first block read: the answer may still be another one.
                starts.append(message)
                return
            if starts:
                await send(starts.pop())
            is_last = message["type"] == "http.response.body" and not message.get("more_body")
            # The server ignores what is sent to a client that has left.
            arrives = whole and is_last and not await Request(scope, receive).is_disconnected()
            await send(message)
            if arrives:
                self._jobs.disk.begin(self._jobs.mark_fetched, self._job)

        try:
            await super().__call__(scope, receive, marking)
        except OSError as error:
            if not starts:  # the client has got a part of the file, which cannot be taken back
                raise
            with _reading():
                raise error


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """Turn an error of the disk in the body into the refusal that says whether the translation is gone."""
    with storing():
        try:
            yield
        except FileNotFoundError:
            raise UnknownError("document not found") from None
