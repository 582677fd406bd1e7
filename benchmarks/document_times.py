"""Seconds that documents cost beside the search: reading, writing and checking them, and translating their texts.

    python -m benchmarks.document_times --src train.en --run RUN [--sample 400]

A web page of 1 MB, a .docx of 500 pages and a film of 2,000 cues are made of the sentences. Reading, writing and the
check of the result are timed whole, in workers, as ``translate_document`` does them. The run translates a sample of the
texts, drawn with a seed; the time of all is extrapolated by their characters. The whole is written with translations
that are as many Chinese characters as there are words, in a random order, which is the most work for tags and cues.
Seconds are those of a processor, with one thread for the model, so that other programs on the machine do not count.
"""

from __future__ import annotations

import argparse
import io
import os
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import docx
import torch
from docx.enum.text import WD_BREAK

from benchmarks.documents import clock_time as time_of_cue
from benchmarks.other_order import permuted
from benchmarks.real_documents.measure import by_model
from benchmarks.record import save
from dragoman.data.corpus import read_lines
from dragoman.documents.document import DocumentInfo
from dragoman.documents.translate import open_document

SEED = 41
PAGE_BYTES = 1 << 20
BOOK_PAGES, PARAGRAPHS_OF_PAGE, WORDS_OF_PARAGRAPH = 500, 6, 50
CUES = 2000

Sentences = Iterator[str]


def page(sentences: Sentences) -> bytes:
    """A web page of 1 MB: headings, paragraphs with links and emphasis, lists and tables."""
    pieces, size, number = ['<!DOCTYPE html>\n<html lang="en"><head><title>A page</title></head>\n<body>'], 0, 0
    while size < PAGE_BYTES:
        number += 1
        title, one, two, item, cell = islice(sentences, 5)
        words = one.split()
        linked = " ".join([*words[:1], f'<a href="/p/{number}" class="link">{" ".join(words[1:3])}</a>', *words[3:]])
        pieces.append(
            f'<section id="s{number}"><h2>{title}</h2>\n<p class="text">{linked} <em>{two}</em></p>\n'
            f'<ul><li>{item}</li></ul><table><tr><td>{cell}</td><td>{number}</td></tr></table></section>'
        )  # fmt: skip
        size += len(pieces[-1])
    return "\n".join([*pieces, "</body></html>\n"]).encode()


def book(sentences: Sentences) -> bytes:
    """A .docx of 500 pages: paragraphs of about 50 words, each with a word in bold."""
    made = docx.Document()
    for number in range(BOOK_PAGES):
        made.add_heading(next(sentences), 2)
        for _ in range(PARAGRAPHS_OF_PAGE):
            words: list[str] = []
            while len(words) < WORDS_OF_PARAGRAPH:
                words += next(sentences).split()
            paragraph = made.add_paragraph(" ".join([*words[:5], ""]))
            paragraph.add_run(words[5]).bold = True
            paragraph.add_run(" ".join(["", *words[6:]]))
        if number + 1 < BOOK_PAGES:
            made.add_paragraph().add_run().add_break(WD_BREAK.PAGE)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def film(sentences: Sentences) -> bytes:
    """SubRip of 2,000 cues: sentences over one to three of them, some of two lines."""
    chance, at_s = random.Random(SEED), 1.0
    cues: list[str] = []
    while len(cues) < CUES:
        words = next(sentences).split()
        n = min(len(words), chance.choice((1, 1, 2, 3)))
        for i in range(n):
            own = words[len(words) * i // n : len(words) * (i + 1) // n]
            lines = [own[: len(own) // 2], own[len(own) // 2 :]] if len(own) > 5 else [own]
            shown = "\n".join(map(" ".join, lines))
            cues.append(f"{len(cues) + 1}\n{time_of_cue(at_s, ',')} --> {time_of_cue(at_s + 1.5, ',')}\n{shown}\n")
            at_s += 1.6
        at_s += 2
    return "\n".join(cues[:CUES]).encode()


KINDS: dict[str, tuple[str, Callable[[Sentences], bytes]]] = {
    "page of 1 MB": (".html", page), "book of 500 pages": (".docx", book), "film of 2,000 cues": (".srt", film),
}  # fmt: skip


def measure(lines: Sequence[str], run: Path, n_sample: int) -> dict[str, Any]:
    """Return the seconds of each document, and the share of what is not translating."""
    torch.set_num_threads(1)
    translate, tgt_lang = by_model(run)
    translate([lines[0]])  # loads what is loaded once
    figures = {}
    for kind, (suffix, make) in KINDS.items():
        data = make(shuffled(lines))
        info = DocumentInfo(f"a{suffix}", "en", tgt_lang)
        open_document(data, info)  # starts a worker
        started = processor_s()
        opened = open_document(data, info)
        opened_s = processor_s() - started
        made = permuted(opened.texts)
        started = processor_s()
        _, report = opened.finish(made)
        finished_s = processor_s() - started
        sample = random.Random(SEED).sample(opened.texts, min(n_sample, len(opened.texts)))
        started = processor_s()
        translate(sample)
        sample_s = processor_s() - started
        translated_s = sample_s * sum(map(len, opened.texts)) / sum(map(len, sample))
        own_s = opened_s + finished_s
        figures[kind] = {
            "bytes": len(data), "texts": len(opened.texts), "characters": sum(map(len, opened.texts)),
            "named": len(report.left), "opened_s": round(opened_s, 3), "finished_s": round(finished_s, 3),
            "sample_texts": len(sample), "sample_translated_s": round(sample_s, 2),
            "translated_s_extrapolated": round(translated_s, 1),
            "share_beside_the_search": round(own_s / (own_s + translated_s), 4),
        }  # fmt: skip
        print(kind, figures[kind], flush=True)
    return figures


def processor_s() -> float:
    """Return the seconds of a processor that this process and its workers, dead and alive, have used (on Linux)."""
    own = os.times()
    total = own.user + own.system + own.children_user + own.children_system
    for children in Path("/proc/self/task").glob("*/children"):
        for child in children.read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def shuffled(lines: Sequence[str]) -> Sentences:
    """Return the sentences in an order drawn with a seed, again and again with a number, so that all texts differ."""
    order = list(lines)
    random.Random(SEED).shuffle(order)
    numbered = ((line if n == 1 else f"{n} {line}" for line in order) for n in count(1))
    return chain.from_iterable(numbered)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--src", type=Path, required=True, help="English sentences")
    parser.add_argument("--run", type=Path, required=True, help="a run from English to Chinese")
    parser.add_argument("--sample", type=int, default=400, help="number of texts of each document to translate")
    options = parser.parse_args()
    lines = [line.strip() for line in read_lines(options.src) if len(line.split()) > 2]
    figures = measure(lines, options.run, options.sample)
    command = f"python -m benchmarks.document_times --src SRC --run RUN --sample {options.sample}"
    save("documents/time", figures, command, ["torch", "python-docx"])


if __name__ == "__main__":
    main()
