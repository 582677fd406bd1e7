"""What the ready bundles make of the frozen test, as a reader judged it.

    python -m benchmarks.ready.judged translate    # writes judged.de.tsv and judged.zh.tsv without marks, to be read
    python -m benchmarks.ready.judged report       # writes results/newcomer/ready.md and ready.json from the marks

A line of ``judged.*.tsv`` is a mark, the source, the translation and a remark. ``+`` is a translation that a reader of
the language understands and that says what the source says; small slips of style may be in it. All else is ``-``.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ready.frozen import FOLDER, SUMS, lines
from benchmarks.record import RESULTS, machine
from dragoman import Translator, __version__
from dragoman.translation.quality import QUALITIES

LANGUAGES = {"de": "German", "zh": "Chinese"}
TARGETS = {"tatoeba": 70, "lecture": 16}
READER = "one reader, an assistant that had no part in the training; another may differ by 5 of 100"
OUT = RESULTS / "newcomer"


@dataclass(frozen=True)
class Judged:
    """A translation and its mark."""

    mark: str
    src: str
    hyp: str
    remark: str


def sources() -> list[tuple[str, str]]:
    """Return the sentences of the frozen test with the part that each is of."""
    return [(part, line) for part in TARGETS for line in lines(FOLDER / f"{part}.en")]


def translate() -> None:
    """Write the translations, keeping the marks of those that have not changed."""
    for language in LANGUAGES:
        path = FOLDER / f"judged.{language}.tsv"
        marks = {(row.src, row.hyp): row for row in read(path)} if path.exists() else {}
        texts = [text for _, text in sources()]
        rows = []
        for src, translation in zip(texts, Translator.load(f"en-{language}").translate(texts), strict=True):
            known = marks.get((src, translation.text), Judged("?", src, translation.text, ""))
            rows.append("\t".join((known.mark, known.src, known.hyp, known.remark)) + "\n")
        path.write_text("".join(rows), encoding="utf-8")


def read(path: Path) -> list[Judged]:
    """Return the rows of a file of marks."""
    return [Judged(*line.split("\t")) for line in lines(path)]


def report() -> None:
    """Check that the marks are of today's translations, count them, and write the page and the record."""
    counts: dict[str, dict[str, str]] = {}
    quality: dict[str, dict[str, str]] = {}
    page = [
        "# The ready bundles, read",
        "",
        "100 sentences drawn from Tatoeba's dev sets (tatoeba.org, CC BY 2.0 FR) and 20 of a lecture, written down "
        "before the bundles were trained. ✓: understandable and right; ✗: not, with the reason.",
        f"Judged by {READER}.",
        "",
    ]
    for language, name in LANGUAGES.items():
        rows = read(FOLDER / f"judged.{language}.tsv")
        texts = [text for _, text in sources()]
        translations = Translator.load(f"en-{language}").translate(texts)
        now = [translation.text for translation in translations]
        if [(row.src, row.hyp) for row in rows] != list(zip(texts, now, strict=True)):
            raise SystemExit(f"judged.{language}.tsv is of other translations: run translate, and read again")
        if unread := [row.src for row in rows if row.mark not in ("+", "-")]:
            raise SystemExit(f"judged.{language}.tsv: no mark for {unread[0]}")
        words = [translation.quality for translation in translations]
        quality[name] = {
            word: f"{sum(row.mark == '+' for row, own in zip(rows, words, strict=True) if own == word)} "
            f"of {words.count(word)} right"
            for word in QUALITIES
        }
        counts[name] = {}
        for part, target in TARGETS.items():
            own = [row for row, (of, _) in zip(rows, sources(), strict=True) if of == part]
            right = sum(row.mark == "+" for row in own)
            counts[name][part] = f"{right} of {len(own)}"
            page += [f"## {name}, {part}: {right} of {len(own)} (target {target})", "", "| | English | translation | |",
                     "|---|---|---|---|"]  # fmt: skip
            page += [f"| {'✓' if row.mark == '+' else '✗'} | {row.src} | {row.hyp} | {row.remark} |" for row in own]
            page.append("")
    OUT.mkdir(exist_ok=True)
    (OUT / "ready.md").write_text("\n".join(page), encoding="utf-8")
    record = {
        "command": "python -m benchmarks.ready.judged report",
        "machine": machine(),
        "versions": {"dragoman": __version__},
        "date": "2026-11-26",
        "inputs": {"rule": "see benchmarks/ready/frozen.py", "seed": 2026, "sha256": SUMS},
        "judge": READER,
        "before": {"bundles in the package": 0, "`dragoman translate demo`": "error: demo: no such run"},
        "after": {"understandable and right": counts, "targets": TARGETS, "by the quality that was estimated": quality},
    }
    (OUT / "ready.json").write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(counts, indent=2))


def main() -> None:
    """Run the named step."""
    {"translate": translate, "report": report}[sys.argv[1]]()


if __name__ == "__main__":
    main()
