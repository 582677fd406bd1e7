"""An API that this file adds to the one list has routes, an error shape, a queue and a body limit of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi import APIRouter, Request
from pydantic import BaseModel

from dragoman.serving import app
from dragoman.serving.apis.api import Api
from dragoman.serving.batcher import Batcher
from dragoman.serving.http import check_key, fields_of, read, state_of
from dragoman.serving.refusals import MalformedError

router = APIRouter(prefix="/tiny")


class Words(BaseModel):
    """What ``/tiny/say`` reads."""

    words: str


@router.post("/say")
async def say(request: Request) -> dict[str, str]:
    """Translate the text of the form."""
    service, fields = state_of(request).service, await fields_of(request)
    owner = check_key(request, fields, missing=401, wrong=403)
    texts = [read(Words, fields).words]
    if texts == ["nothing"]:
        raise MalformedError("there is nothing to say")
    (answer,) = await service.translate(texts, service.pair("en", "de", texts), service.options(), owner)
    return {"said": answer.text}


@router.post("/file")
async def file(request: Request) -> dict[str, int]:
    """Count the bytes of an upload."""
    return {"bytes": len(await request.body())}


TINY = Api(router, "/tiny/", lambda message: {"wrong": [message]}, queued=["/tiny/say"], uploads=["/tiny/file"])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, serving: Callable[..., Any]) -> Any:
    monkeypatch.setattr(app, "APIS", [*app.APIS, TINY])
    return serving(max_body=1000, max_document=3000)


def test_it_translates_and_refuses_in_its_own_shape(server: Any) -> None:
    native = server("/v1/translate", {"text": "a dog"}).json["translations"][0]["text"]
    assert server("/tiny/say", form={"words": "a dog"}).json == {"said": native}
    refused = server("/tiny/say", form={"words": "nothing"})
    assert (refused.status, refused.json) == (400, {"wrong": ["there is nothing to say"]})
    assert server("/tiny/nothing").json == {"wrong": ["Not Found"]}  # no route, but the prefix says whose clients ask
    assert server("/v2/nothing", {}).json == {"message": "Not Found"}
    spec = server("/spec").json["paths"]["/tiny/say"]["post"]["responses"]["429"]["content"]["application/json"]
    assert spec["schema"]["required"] == ["wrong"]


def test_its_uploads_may_be_as_long_as_documents(server: Any) -> None:
    assert server("/tiny/file", b"x" * 2500).json == {"bytes": 2500}
    refused = server("/tiny/say", b"x" * 2500)
    assert (refused.status, list(refused.json)) == (413, ["wrong"])


def test_its_texts_wait_in_the_queue_of_all(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Batcher, "busy_for_s", lambda self, owner: 2.5)
    refused = server("/tiny/say", form={"words": "a dog"})
    assert (refused.status, refused.headers["retry-after"], list(refused.json)) == (429, "3", ["wrong"])
    assert server("/tiny/file", b"x").status == 200  # waits in no queue
