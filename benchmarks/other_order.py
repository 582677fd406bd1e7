"""Do links, emphasis, cues and cells keep their words in a language of another order?

    python -m benchmarks.other_order --src dev.en [--run RUN] [--files 1000]

English documents are made of the sentences, with links and emphasis around words that are drawn with a seed. A trained
run translates them into Chinese; without one, each translation is as many Chinese characters as there are words, in a
random order, with the links of that order. Parsers of other programs read both. An element is emptied if it had words
and has none. It holds another's words if its characters have links, and none of them leads to its own words, which have
links to words too; a link to a full stop gives an element no word. The links are those of the model, so the figure
judges where tags are put, not whether the model is right.
"""

from __future__ import annotations

import argparse
import csv
import io
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import docx
import html5lib
import srt
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from markdown_it import MarkdownIt

from benchmarks.real_documents.measure import by_model
from benchmarks.record import save
from dragoman.data.corpus import read_lines
from dragoman.documents.document import DocumentInfo
from dragoman.documents.translate import open_document
from dragoman.translation.assemble import Translation

SEED = 41
SENTENCES = 8
"""Number of sentences in a document."""


@dataclass(frozen=True)
class Sentence:
    """Words, and the marked stretches among them: (first, after the last, is a link)."""

    words: tuple[str, ...]
    spans: tuple[tuple[int, int, bool], ...]

    @property
    def text(self) -> str:
        """Its words."""
        return " ".join(self.words)

    def marked(self, mark: Callable[[str, bool, int], str]) -> str:
        """Return its text with each stretch marked; ``mark`` gets the text, whether it is a link, and its number."""
        pieces, at = [], 0
        for number, (start, end, is_link) in enumerate(self.spans):
            pieces += [*self.words[at:start], mark(" ".join(self.words[start:end]), is_link, number)]
            at = end
        return " ".join([*pieces, *self.words[at:]])


def drawn(line: str, chance: random.Random) -> Sentence:
    """Return a sentence with up to three marked stretches of one to three words, apart from each other."""
    words = tuple(line.split())
    spans: list[tuple[int, int, bool]] = []
    at = 0
    for _ in range(3):
        start = at + chance.randint(0, 3)
        end = start + chance.randint(1, 3)
        if end > len(words):
            break
        spans.append((start, end, chance.random() < 0.5))
        at = end + 1
    return Sentence(words, tuple(spans))


# --- documents, and how other programs read them: texts of a sentence and of its marked stretches ---------------------

Read = list[tuple[str, list[str]]]
"""For each sentence its text, and the texts of its elements by their numbers."""


def page(sentences: Sequence[Sentence]) -> bytes:
    """HTML."""
    mark = lambda text, link, n: f'<a href="#" id="{n}">{text}</a>' if link else f'<em id="{n}">{text}</em>'  # noqa: E731
    return "\n".join(f"<p>{one.marked(mark)}</p>" for one in sentences).encode()


def read_page(data: bytes) -> Read:
    """By html5lib."""
    tree = html5lib.parse(data.decode(), namespaceHTMLElements=False)
    paragraphs = []
    for paragraph in tree.iter("p"):
        marked = {int(each.get("id")): "".join(each.itertext()) for each in paragraph.iter() if each.get("id")}
        paragraphs.append(("".join(paragraph.itertext()), [marked[n] for n in range(len(marked))]))
    return paragraphs


def markdown(sentences: Sequence[Sentence]) -> bytes:
    """Markdown, where emphasis is a link too: it is told from others by its address."""
    mark = lambda text, link, n: f"[{text}](#{n})" if link else f"[**{text}**](#{n})"  # noqa: E731
    return "\n\n".join(one.marked(mark) for one in sentences).encode()


def read_markdown(data: bytes) -> Read:
    """By markdown-it."""
    paragraphs = []
    for token in MarkdownIt("commonmark").parse(data.decode()):
        if token.type != "inline":
            continue
        texts: dict[int, str] = {}
        open_links: list[int] = []
        for child in token.children or []:
            if child.type == "link_open":
                open_links.append(int(str(child.attrs["href"])[1:]))
                texts[open_links[-1]] = ""
            elif child.type == "link_close":
                open_links.pop()
            for number in open_links:
                texts[number] += child.content
        text = "".join(child.content for child in token.children or [])
        paragraphs.append((text, [texts[n] for n in range(len(texts))]))
    return paragraphs


def word(sentences: Sequence[Sentence]) -> bytes:
    """A .docx by python-docx: hyperlinks with their number as anchor."""
    made = docx.Document()
    for one in sentences:
        paragraph = made.add_paragraph()
        at = 0
        for number, (start, end, _) in enumerate(one.spans):
            paragraph.add_run(" ".join([*one.words[at:start], ""]))
            link = OxmlElement("w:hyperlink")
            link.set(qn("w:anchor"), f"n{number}")
            run = paragraph.add_run(" ".join(one.words[start:end]))
            run.element.getparent().append(link)
            link.append(run.element)
            paragraph.add_run(" " if end < len(one.words) else "")
            at = end
        paragraph.add_run(" ".join(one.words[at:]))
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def read_word(data: bytes) -> Read:
    """By python-docx."""
    paragraphs = []
    for paragraph in docx.Document(io.BytesIO(data)).paragraphs:
        links = {int(link.fragment[1:]): link.text for link in paragraph.hyperlinks}
        paragraphs.append((paragraph.text, [links[n] for n in range(len(links))]))
    return paragraphs


def subtitles(sentences: Sequence[Sentence]) -> bytes:
    """SubRip: a sentence in cues of some words each, and a pause before the next."""
    cues, at = [], 1.0
    for one in sentences:
        for start, end in cue_bounds(one):
            times = [f"{int(second) // 60:02}:{int(second) % 60:02},000" for second in (at, at + 2)]
            cues.append(f"{len(cues) + 1}\n00:{times[0]} --> 00:{times[1]}\n{' '.join(one.words[start:end])}\n")
            at += 2
        at += 5
    return "\n".join(cues).encode()


def cue_bounds(one: Sentence) -> list[tuple[int, int]]:
    """Return the words of each cue of a sentence."""
    n = max(1, min(4, len(one.words) // 3))
    edges = [len(one.words) * i // n for i in range(n + 1)]
    return list(pairwise(edges))


def read_subtitles(data: bytes) -> Read:
    """By srt: a cue is an element; a pause ends a sentence."""
    sentences: list[list[str]] = []
    last = None
    for cue in srt.parse(data.decode()):
        if last is None or (cue.start - last).total_seconds() > 1:
            sentences.append([])
        sentences[-1].append(cue.content)
        last = cue.end
    return [(" ".join(cues), cues) for cues in sentences]


def table(sentences: Sequence[Sentence]) -> bytes:
    """CSV."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerows([["id", "text"], *([n, one.text] for n, one in enumerate(sentences))])
    return out.getvalue().encode()


def read_table(data: bytes) -> Read:
    """By Python's csv: a cell is an element."""
    rows = csv.DictReader(io.StringIO(data.decode(), newline=""))
    return [(row["text"], [row["text"]]) for row in rows]


KINDS: dict[str, tuple[Callable[[Sequence[Sentence]], bytes], Callable[[bytes], Read]]] = {
    ".html": (page, read_page), ".md": (markdown, read_markdown), ".docx": (word, read_word),
    ".srt": (subtitles, read_subtitles), ".csv": (table, read_table),
}  # fmt: skip


# --- translations by a rule -------------------------------------------------------------------------------------------

HAN = [chr(code) for code in range(0x4E00, 0x9F00)]


def permuted(texts: Sequence[str]) -> dict[str, Translation]:
    """Return for each text as many Chinese characters as it has words, in a random order."""
    translations = {}
    for text in texts:
        chance = random.Random(f"{SEED} {text}")
        order = list(range(len(text.split())))
        chance.shuffle(order)
        made = "".join(chance.choices(HAN, k=len(order)))
        translations[text] = Translation(made, 0.0, alignment=tuple(sorted((i, n) for n, i in enumerate(order))))
    return translations


# --- figures ----------------------------------------------------------------------------------------------------------

_WORD = re.compile(r"\w")


def others_words(bounds: tuple[int, int], text: str, translation: Translation) -> bool:
    """True if no link of an element's characters leads to its own words, though these have links."""
    start, end = bounds
    target = translation.text
    if not translation.alignment or target.count(text.strip()) != 1:
        return False
    places = {i for i, character in enumerate(target) if not character.isspace()}
    numbers = {place: n for n, place in enumerate(sorted(places))}
    first = target.index(text.strip())
    inside = {numbers[place] for place in range(first, first + len(text.strip())) if place in numbers}
    links = [src for src, tgt in translation.alignment if tgt in inside]
    words = {number for place, number in numbers.items() if _WORD.match(target[place])}
    has_own = any(start <= src < end for src, tgt in translation.alignment if tgt in words)
    return bool(links) and has_own and not any(start <= src < end for src in links)


def measure(
    lines: Sequence[str], n_files: int, translate: Callable[[list[str]], dict[str, Translation]]
) -> dict[str, Any]:
    """Translate the documents and count what is emptied, and what holds another's words."""
    chance = random.Random(SEED)
    by_kind: dict[str, Counter[str]] = {suffix: Counter() for suffix in KINDS}
    why: Counter[str] = Counter()
    examples: list[str] = []
    started = time.perf_counter()
    for number in range(n_files):
        suffix = list(KINDS)[number % len(KINDS)]
        make, read = KINDS[suffix]
        sentences = [drawn(chance.choice(lines), chance) for _ in range(SENTENCES)]
        data = make(sentences)
        opened = open_document(data, DocumentInfo(f"a{suffix}", "en", "zh", ("text",) if suffix == ".csv" else ()))
        translations = translate(opened.texts)
        result, report = opened.finish(translations)
        counts = by_kind[suffix]
        counts["files"] += 1
        counts["named"] += len(report.left)
        why.update(segment.why for segment in report.left)
        _compare(sentences, read(data), read(result), (suffix, translations, counts, examples))
    total: Counter[str] = sum(by_kind.values(), Counter())
    return {
        "files": n_files, "total": dict(total), "by_kind": {suffix: dict(own) for suffix, own in by_kind.items()},
        "why_named": dict(why), "examples": examples[:10], "seconds": round(time.perf_counter() - started, 1),
    }  # fmt: skip


def _compare(
    sentences: Sequence[Sentence], before: Read, after: Read,
    about: tuple[str, Mapping[str, Translation], Counter[str], list[str]],
) -> None:  # fmt: skip
    suffix, translations, counts, examples = about
    if [len(own) for _, own in before] != [len(own) for _, own in after]:
        counts["another structure"] += 1
        return
    for one, (_, own), (_, made) in zip(sentences, before, after, strict=True):
        bounds = cue_bounds(one) if suffix == ".srt" else [(start, end) for start, end, _ in one.spans]
        bounds = [(0, len(one.words))] if suffix == ".csv" else bounds
        for number, (text, translated) in enumerate(zip(own, made, strict=True)):
            counts["elements"] += 1
            is_empty = bool(_WORD.search(text)) and not _WORD.search(translated)
            counts["emptied"] += is_empty
            translation = translations.get(one.text)
            # Cues follow each other in time: in another order of words some must hold what was said in another cue.
            is_other = (
                suffix != ".srt" and translation is not None and others_words(bounds[number], translated, translation)
            )
            counts["another's words"] += is_other
            if is_empty or is_other:
                examples.append(f"{suffix}: {one.text!r}, {text!r} became {translated!r} in {made}")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--src", type=Path, required=True, help="English sentences")
    parser.add_argument("--run", type=Path, help="a run from English to Chinese; default: random orders")
    parser.add_argument("--files", type=int, default=1000)
    options = parser.parse_args()
    lines = [line.strip() for line in read_lines(options.src) if len(line.split()) > 2]
    translate = permuted if options.run is None else by_model(options.run)[0]
    known: dict[str, Translation] = {}

    def once(texts: list[str]) -> dict[str, Translation]:
        """Translate each text once, however many documents have it."""
        known.update(translate([text for text in texts if text not in known]))
        return {text: known[text] for text in texts}

    figures = measure(lines, options.files, once)
    name = "other_order" if options.run is None else "other_order_by_model"
    command = f"python -m benchmarks.other_order --src SRC --files {options.files}" + (
        " --run RUN" if options.run else ""
    )
    save(f"documents/{name}", figures, command, ["torch", "html5lib", "markdown-it-py", "python-docx", "srt"])


if __name__ == "__main__":
    main()
