"""Answer with the translation of a document, which counts as fetched once its client has received it whole."""

from __future__ import annotations

import stat

from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.types import Message, Receive, Scope, Send

from dragoman.serving.jobs import Job, Jobs
from dragoman.serving.refusals import UnknownError


class Delivery(FileResponse):
    """Translation of a finished job, as a file."""

    def __init__(self, jobs: Jobs, job: Job) -> None:
        """Answer with the translation of ``job``.

        Raises:
            UnknownError: The job went while room was short.
        """
        path = jobs.result(job)
        try:
            state = path.lstat()
        except FileNotFoundError:
            raise UnknownError("document not found") from None
        if not stat.S_ISREG(state.st_mode):  # a link would lead to another file of this machine
            raise UnknownError("document not found")
        # A cache between must not keep it: its address alone gives it to whoever has it.
        headers = {"cache-control": "private, no-store"}
        super().__init__(
            path, headers=headers, media_type="application/octet-stream", filename=job.name, stat_result=state
        )
        self._jobs, self._job = jobs, job

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file, and mark the job unless the client left before the end, or requested a part of it."""
        whole = scope["method"] != "HEAD" and not any(name == b"range" for name, _ in scope["headers"])

        async def marking(message: Message) -> None:
            is_last = message["type"] == "http.response.body" and not message.get("more_body")
            # The server ignores what is sent to a client that has left.
            arrives = whole and is_last and not await Request(scope, receive).is_disconnected()
            await send(message)
            if arrives:
                self._jobs.disk.begin(self._jobs.mark_fetched, self._job)

        await super().__call__(scope, receive, marking)
