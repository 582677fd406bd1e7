"""``dragoman doctor`` on real text: what it finds there, how much of what is put in it finds, and what it costs.

Into a corpus are put, each in 1% of its pairs: targets of other pairs, swapped sides, copies of the source, runs of ten
lines shifted by one, and pairs that are repeated at the end. What the doctor finds in the corpus as it is counts as
neither right nor wrong, and so does the line behind a shifted run: precision is taken over the other lines. Each
examination runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.record import save

CORPORA = (
    ("multi30k", "en", "de", "val", "test_2016_flickr"),
    ("tatoeba-en-de", "en", "de", "dev", None),
    ("tatoeba-en-zh", "en", "zh", "dev", None),
    ("pydocs-en-zh", "en", "zh", "dev", None),
)
RUN = 10  # lines of a shifted run
MILLION = 1_000_000
KINDS = {  # what is put in: under which names it may be found
    "other target": ("misaligned",),
    "swapped sides": ("swapped-sides",),
    "copied source": ("untranslated",),
    "shifted run": ("shifted",),
    "repeated pair": ("duplicate",),
}

CHILD = """
import json, resource, sys, time
from pathlib import Path
from dragoman.config import PairOfFiles
from dragoman.doctor import findings
findings.N_EXAMPLES = 10**9
from dragoman.doctor import alignment
from dragoman.doctor import text_checks as corpus
from dragoman.progress import Ticker
from dragoman.languages.codes import language_of
src, tgt = map(Path, sys.argv[1:3])
runs = []
plain = corpus.second_pass
def noted(*args):
    scores, shifted, marks = plain(*args)
    runs[:] = [[shift.first - 1, shift.last] for shift in shifted]  # of the last reading of the text
    return scores, shifted, marks
corpus.second_pass = noted
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
started, idle = time.perf_counter(), peak()
text = PairOfFiles(src=src, tgt=tgt, src_lang=language_of(src), tgt_lang=language_of(tgt))
found = corpus.examine(text, Ticker(quiet=True))
seconds = time.perf_counter() - started
lines = {f.name: [line - 1 for line in f.lines] for f in found.findings} if sys.argv[3] == "lines" else {}
if runs and lines:
    lines["shifted"] = [line for first, last in runs for line in range(first, last)]
counts = {f.name: f.n for f in found.findings}
print(json.dumps({"seconds": seconds, "peak_mib": peak(), "idle_mib": idle, "counts": counts, "lines": lines}))
"""


def examine(src: Path, tgt: Path, what: str = "lines") -> dict[str, Any]:
    """What the doctor finds in a process of its own, and how long and how much memory it took."""
    command = [sys.executable, "-c", CHILD, str(src), str(tgt), what]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, Any] = json.loads(out)
    return found


def damaged(src: list[str], tgt: list[str]) -> tuple[list[str], list[str], dict[str, set[int]]]:
    """The corpus with damage, and where which damage is."""
    chance, n = random.Random(1), len(src)
    count, used = n // 100, set[int]()
    src, tgt = src[:], tgt[:]
    where: dict[str, set[int]] = {"shifted run": set(), "ends of runs": set()}
    while len(where["shifted run"]) < count:
        first = chance.randrange(n - RUN - 1)
        lines = range(first, first + RUN + 1)
        if used.isdisjoint(lines):
            used.update(lines)
            tgt[first : first + RUN + 1] = [*tgt[first + 1 : first + RUN + 1], tgt[first]]
            where["shifted run"] |= set(lines[:-1])
            where["ends of runs"].add(lines[-1])  # its target is RUN lines away: neither a shift nor a pair
    free = [i for i in range(n) if i not in used]
    chance.shuffle(free)
    parts = [free[k * count : (k + 1) * count] for k in range(4)]
    for i, text in zip(parts[0], [tgt[i] for i in [*parts[0][1:], parts[0][0]]], strict=True):
        tgt[i] = text
    for i in parts[1]:
        src[i], tgt[i] = tgt[i], src[i]
    for i in parts[2]:
        tgt[i] = src[i]
    where |= dict(zip(("other target", "swapped sides", "copied source"), map(set, parts), strict=False))
    where["repeated pair"] = set(range(n, n + count))
    return src + [src[i] for i in parts[3]], tgt + [tgt[i] for i in parts[3]], where


def rates(found: dict[str, list[int]], before: dict[str, list[int]], where: dict[str, set[int]]) -> dict[str, Any]:
    """Recall and precision of each kind of damage; lines that were found before are left out of precision."""
    table = {}
    for kind, names in KINDS.items():
        hits = {line for name in names for line in found.get(name, [])}
        known = {line for name in names for line in before.get(name, [])}
        wanted, new = where[kind], hits - (known - where[kind]) - where["ends of runs"]
        table[kind] = {
            "put_in": len(wanted),
            "found": len(new),
            "recall": round(len(new & wanted) / len(wanted), 4),
            "precision": round(len(new & wanted) / max(len(new), 1), 4),
        }
    return table


def lines_of(path: Path) -> list[str]:
    """A file cut at LF."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def write(path: Path, lines: list[str]) -> Path:
    """Lines, each ended by LF."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


def overlaps(folder: Path, src: str, tgt: str, valid: str, test: str | None) -> dict[str, int]:
    """What the command finds that validation and test text share with the training text."""
    files = ["--src", f"{folder}/train.{src}", "--tgt", f"{folder}/train.{tgt}"]
    files += ["--valid-src", f"{folder}/{valid}.{src}", "--valid-tgt", f"{folder}/{valid}.{tgt}"]
    files += ["--test-src", f"{folder}/{test}.{src}", "--test-ref", f"{folder}/{test}.{tgt}"] if test else []
    command = [sys.executable, "-m", "dragoman", "doctor", *files, "--json", "--quiet"]
    out = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {f["name"]: f["n"] for f in out["findings"] if "overlap" in f["name"]}


def million(folder: Path, corpus: Path) -> dict[str, float]:
    """Seconds and memory of a million pairs: the corpus again and again, each time with another number behind."""
    src, tgt = lines_of(corpus / "train.en"), lines_of(corpus / "train.de")
    times = MILLION // len(src) + 1
    files = [
        write(folder / f"million.{lang}", [f"{line} {k}" for k in range(times) for line in side][:MILLION])
        for lang, side in (("en", src), ("de", tgt))
    ]
    found = examine(*files, "counts")
    return {name: round(found[name], 1) for name in ("seconds", "peak_mib", "idle_mib")}


def corpora(folder: Path, data: Path) -> dict[str, Any]:
    """What is found in each corpus as it is, and with damage; ``folder`` is for the damaged ones."""
    figures: dict[str, Any] = {}
    for corpus, src_lang, tgt_lang, valid, test in CORPORA:
        paths = [data / corpus / f"train.{lang}" for lang in (src_lang, tgt_lang)]
        as_it_is = examine(*paths)
        src, tgt, where = damaged(*map(lines_of, paths))
        found = examine(write(folder / f"x.{src_lang}", src), write(folder / f"x.{tgt_lang}", tgt))
        figures[corpus] = {
            "pairs": len(lines_of(paths[0])),
            "seconds": round(as_it_is["seconds"], 1),
            "peak_mib": round(as_it_is["peak_mib"]),
            "found": as_it_is["counts"] | overlaps(data / corpus, src_lang, tgt_lang, valid, test),
            "put_in": rates(found["lines"], as_it_is["lines"], where),
        }
        print(corpus, json.dumps(figures[corpus]), flush=True)
    return figures


def main() -> None:
    """Examine the corpora, or a million pairs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=("corpora", "million"), default="corpora")
    parser.add_argument("--data", type=Path, required=True, help="a folder with the corpora")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.what == "corpora":
            save("doctor", corpora(Path(folder), args.data), "python -m benchmarks.doctor --data DATA", ("numpy",))
        else:
            figures = million(Path(folder), args.data / "tatoeba-en-de")
            save("doctor_million", figures, "python -m benchmarks.doctor million --data DATA", ("numpy",))


if __name__ == "__main__":
    main()
