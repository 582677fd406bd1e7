"""JSON of requests, read strictly and within limits of what it may hold.

    fields = strict_json(b'{"text": "the dog"}')

Whatever a request holds, telling its sender what is wrong with it takes milliseconds.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from dragoman.serving.refusals import MalformedError

MOST_FIELDS = 1_000
"""Largest number of fields of a request."""

MOST_VALUES = 1_000
"""Largest number of values in a body that are no text: numbers, lists, objects. Each can be wrong in its own way."""

MOST_DIGITS = 300
"""Largest number of digits of a whole number."""


def strict_json(body: bytes) -> Any:
    """Return the value of a JSON text in UTF-8; a byte order mark is skipped.

    Raises:
        MalformedError: It is no JSON by RFC 8259, or has a name twice, a number beyond those of the machine, or too
            many fields or values.
    """
    try:
        value = _DECODER.decode(body.decode("utf-8-sig"))
    except RecursionError:
        raise MalformedError(invalid_json("its lists and objects are nested too deeply")) from None
    except ValueError as error:
        raise MalformedError(invalid_json(error)) from None
    if isinstance(value, dict) and len(value) > MOST_FIELDS:
        raise MalformedError(f"a request may have at most {MOST_FIELDS:,} fields, got {len(value):,}")
    if (n_values := _n_values(value)) > MOST_VALUES:
        raise MalformedError(f"the body may have at most {MOST_VALUES:,} values that are no text, got {n_values:,}")
    return value


def invalid_json(why: object) -> str:
    """Return the message for a body that cannot be read."""
    return f"the body is not valid JSON in UTF-8: {str(why)[:200]}"


def _n_values(value: Any) -> int:
    """Return the number of values that are no whole text, at all depths; nulls in objects are not counted."""
    n_values, containers = 0, [value]
    while containers:
        container = containers.pop()
        if isinstance(container, dict):
            n_values += n_broken(container)
            members: Iterable[Any] = (member for member in container.values() if member is not None)
        elif isinstance(container, list):
            members = container
        else:
            continue
        texts = []
        for member in members:
            if isinstance(member, str):
                texts.append(member)
                continue
            n_values += 1
            if isinstance(member, list | dict):
                containers.append(member)
        n_values += n_broken(texts)
    return n_values


def n_broken(texts: Iterable[str]) -> int:
    """Return how many texts have half of a surrogate pair."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return sum(any("\ud800" <= character <= "\udfff" for character in text) for text in texts)
    return 0


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number has {len(text)} digits, more than {MOST_DIGITS}")
    return int(text)


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise ValueError(f"the name {next(name for name, n in counts.items() if n > 1)[:40]!r} is there twice")
    return fields


_DECODER = json.JSONDecoder(
    parse_constant=_no_number, parse_float=_finite, parse_int=_whole, object_pairs_hook=_each_name_once
)
