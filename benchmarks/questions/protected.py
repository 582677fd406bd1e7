"""Does what must arrive unchanged arrive? Numbers, addresses, placeholders and emoji, put into ordinary lines."""

from __future__ import annotations

import argparse
import dataclasses
import random
import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.record import save
from dragoman.data.corpus import read_lines
from dragoman.evaluation.metrics import bleu
from dragoman.translation.translator import Translation, Translator

LINES = 1000
WORDS = ("alpha", "index", "north", "paper", "stone", "river", "cloud", "tools", "print", "maple", "radio", "delta")
EMOJI = ("🙂", "😀", "👍🏽", "❤️", "👩‍👩‍👧", "🏳️‍🌈", "🇩🇪", "🚲", "1️⃣", "🎉", ":-)", "<3")


class Made(NamedTuple):
    """A line with items put into it."""

    text: str
    items: tuple[tuple[str, str], ...]  # kind and text of each


def item(kind: str, chance: random.Random) -> str:
    """One item of a kind."""
    one, other, n = chance.choice(WORDS), chance.choice(WORDS), chance.randint(100, 99_999)
    forms = {
        "number": (str(n), f"{n:,}", f"{n / 100:.2f}", f"{n % 23 + 1}:{n % 60:02}", f"2024-0{n % 9 + 1}-1{n % 10}",
                   f"+49 {n % 90 + 10} {n}{n % 10}{n % 7}"),
        "url": (f"https://www.{one}.org/{other}?id={n}", f"http://{one}-{other}.com", f"www.{one}.net/{other}.html"),
        "e-mail": (f"{one}@{other}.org", f"{one}.{other}{n % 100}@example.com"),
        "placeholder": ("%s", f"%({one})d", f"{{{one}}}", "{0}", f"[X{n % 10}X]", f'<x id="{n % 10}"/>', f"${{{one}}}",
                        "&amp;", f"{{{{ {other} }}}}"),
        "emoji": EMOJI,
        "code": (f"{one.upper()[:2]}-{n}", f"{one}_{other}", f"{one}.txt", f"#{one}", f"@{other}{n % 10}"),
    }  # fmt: skip
    return chance.choice(forms[kind])


KINDS = ("number", "url", "e-mail", "placeholder", "emoji", "code")


def with_items(lines: Sequence[str], seed: int = 0) -> list[Made]:
    """Each line with one to three different items, each between two of its words or at an end."""
    chance, made = random.Random(seed), []
    for number, line in enumerate(lines):
        words, items = line.split(" "), {}
        for i in range(chance.choice((1, 1, 1, 2, 2, 3))):
            kind = KINDS[(number + i * chance.randint(1, 5)) % len(KINDS)]
            items[item(kind, chance)] = kind
        kept = [one for one in items if not any(one != other and one in other for other in items)]
        for one in kept:
            words.insert(chance.randint(0, len(words)), one)
        made.append(Made(" ".join(words), tuple((items[one], one) for one in kept)))
    return made


def arrived(kind: str, one: str, text: str) -> bool:
    """Is it in the text: as it was; a number with any separators."""
    if one in text:
        return True
    digits = r"[.,:/\s-]?".join(re.findall(r"\d", one))
    return kind == "number" and re.search(rf"(?<!\d){digits}(?!\d)", text) is not None


def rest(text: str, items: Sequence[tuple[str, str]]) -> str:
    """The text without the items."""
    for _, one in items:
        text = text.replace(one, " ", 1)
    return re.sub(r"\s+([.,!?;:])", r"\1", re.sub(r"\s+", " ", text)).strip()


def count(made: Sequence[Made], found: Sequence[Translation]) -> dict[str, Any]:
    """How many items are there, and how many of the others a note names."""
    total, there, named = Counter[str](), Counter[str](), Counter[str]()
    for line, one in zip(made, found, strict=True):
        notes = " ".join(note.text for note in one.notes if note.kind in ("number", "placeholder"))
        for kind, text in line.items:
            total[kind] += 1
            if arrived(kind, text, one.text):
                there[kind] += 1
            elif repr(text) in notes:
                named[kind] += 1
    n = total.total()
    return {
        "items": n,
        "arrived": round(100 * there.total() / n, 2),
        "arrived_or_named": round(100 * (there + named).total() / n, 2),
        "arrived_by_kind": {kind: round(100 * there[kind] / total[kind], 2) for kind in KINDS},
    }


def main() -> None:
    """Translate the lines as they are, with items, and with items but without carrying them over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="a trained run from English to German")
    parser.add_argument("--data", type=Path, required=True, help="the folder with multi30k")
    parser.add_argument("--lines", type=int, default=LINES)
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--name", default="protected", help="of the file of results")
    given = parser.parse_args()
    lines = list(read_lines(given.data / "multi30k/test_2016_flickr.en"))[: given.lines]
    refs = list(read_lines(given.data / "multi30k/test_2016_flickr.de"))[: given.lines]
    translator, made = Translator.load(given.run), with_items(lines)
    figures: dict[str, Any] = {
        "lines": len(lines),
        "engine": given.engine,
        "decode": dataclasses.asdict(translator.config.decode),
    }
    start = time.perf_counter()
    plain = translator.translate(lines, engine=given.engine)
    figures["without_items"] = {
        "bleu": round(bleu([one.text for one in plain], refs, "de").value, 2),
        "seconds": round(time.perf_counter() - start, 1),
        "notes": sum(note.kind in ("number", "placeholder") for one in plain for note in one.notes),
    }  # fmt: skip
    for name, protect in (("protected", True), ("not_protected", False)):
        start = time.perf_counter()
        found = translator.translate([line.text for line in made], engine=given.engine, protect=protect)
        texts = [rest(one.text, line.items) for one, line in zip(found, made, strict=True)]
        figures[name] = {
            **count(made, found), "bleu_of_the_rest": round(bleu(texts, refs, "de").value, 2),
            "seconds": round(time.perf_counter() - start, 1),
        }  # fmt: skip
        if protect:
            lost = [(line.text, one.text) for line, one in zip(made, found, strict=True)
                    if not all(arrived(kind, text, one.text) for kind, text in line.items)]  # fmt: skip
            figures[name]["examples_of_what_did_not_arrive"] = lost[:5]
    save(
        given.name,
        figures,
        "python -m benchmarks.questions.protected --run RUN --data DATA",
        ("torch", "sentencepiece"),
    )


if __name__ == "__main__":
    main()
