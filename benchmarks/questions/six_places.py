"""One trained model in six places: transformers, CTranslate2, onnxruntime, transformers.js, Argos Translate, a page.

Greedy, and beam 5 with the same length penalty (n ** alpha) and stopping rule (as many finished as the beam is wide):
BLEU of each beside ours, how many translations are identical, and whether those that are not have the better score by
our model. Ours has no guard here and carries no numbers over. A line is translated whole, but by Argos, which splits it
as ours then does, and has a search of its own (beam 4, n ** 0.2), which ours is set to; CTranslate2 in it never answers
with an empty line, as ours may. transformers.js is greedy; on the graphs of ONNX in onnxruntime the search is
ours. ``--place chromium`` measures the page's size and first translation, and is the only one that is timed.

Translations are kept in the folder ``--work``, so that a place may take several calls (``--seconds``); each call puts
what is complete into the one result. Places can be run side by side once ``--place ours`` is done. Fine-tuning and
trimming of imported models are in ``benchmarks.questions.imported``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import dragoman
from benchmarks.record import save
from dragoman.data.corpus import read_lines
from dragoman.evaluation.certify import opened, token_differences
from dragoman.evaluation.significance import compare
from dragoman.translation.options import TranslateOptions
from dragoman.translation.translator import Translator

PEERS = Path(__file__).parents[1] / "peers"
NAME = "six-places"
WHOLE: dict[str, Any] = dict(sentence_split=False, protect=False)
POWER: dict[str, Any] = dict(length_penalty_form="power", patience=1.0)
SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": dict(beam_size=1, **WHOLE),
    "beam 5": dict(beam_size=5, length_penalty=1.0, **POWER, **WHOLE),
    "beam 4, as Argos": dict(beam_size=4, length_penalty=0.2, **POWER, protect=False),
}
BOTH, GREEDY, ARGOS = ("greedy", "beam 5"), ("greedy",), ("beam 4, as Argos",)
CHUNK = 50  # lines translated at a time
READ = 200  # lines whose translations both models read, to compare log-probabilities
TWELVE = "A young man in a blue shirt is standing on a ladder."
OURS, CHROMIUM = "ours", "chromium"


@dataclass(frozen=True)
class Place:
    """Where the model translates: the format that carries it there, and how it is searched there."""

    to: str
    quantizations: tuple[str, ...]
    searches: tuple[str, ...]


PLACES = {
    "transformers": Place("huggingface", ("float32",), BOTH),
    "ctranslate2": Place("ctranslate2", ("float32", "int8"), BOTH),
    "onnxruntime": Place("onnx", ("float32", "int8"), BOTH),
    "transformers.js": Place("onnx", ("float32", "int8"), GREEDY),
    "argos": Place("argos", ("float32",), ARGOS),
    "page": Place("page", ("float32", "int8"), BOTH),
}
Translate = Callable[[Sequence[str]], list[str]]


class Work:
    """What is done so far, in a folder."""

    def __init__(self, given: argparse.Namespace) -> None:
        """Load the run and the text.

        Raises:
            SystemExit: The folder holds translations of another model.
        """
        self.given, self.folder = given, given.work
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lines, self.refs = list(read_lines(given.src)), list(read_lines(given.ref))
        self.translator = Translator.load(given.run, "cpu")
        data = self.translator.config.data
        self.langs = data.src_lang or "", data.tgt_lang or ""
        self.until = time.monotonic() + given.seconds
        digest = self.translator.manifest["sha256"]
        if self.known("bundle") not in (None, digest):
            sys.exit(f"{self.folder}: holds translations of another model; give another --work")
        self.keep("bundle", digest)

    def export(self, to: str, quantization: str) -> Path:
        """The export, made once."""
        path: Path = (
            self.folder / "exports" / (f"{quantization}.argosmodel" if to == "argos" else f"{to}-{quantization}")
        )
        return path if path.exists() else dragoman.export(self.given.run, to, path, quantization)

    def texts(self, label: str, search: str, translate: Translate, n: int | None = None) -> list[str] | None:
        """All translations, or the first n, those of former calls too; None: the time is over, and some are missing."""
        lines = self.lines[:n]
        path = self.folder / f"{label}.{search}.txt"
        found = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        while len(found) < len(lines):
            if time.monotonic() > self.until:
                print(f"{label}, {search}: {len(found)} of {len(lines)} lines", file=sys.stderr)
                return None
            new = translate(lines[len(found) : len(found) + CHUNK])
            with path.open("a", encoding="utf-8") as file:
                file.writelines(f"{one}\n" for one in new)
            found += new
        return found[:n]

    def ours(self, search: str) -> list[str] | None:
        """Our own translations."""
        plan = self.translator.plan(TranslateOptions(**SEARCHES[search]), guard=False)
        return self.texts(
            "ours", search, lambda lines: [one.text for one in self.translator.translate_planned(lines, plan)]
        )

    def theirs(self, place: str, quantization: str, search: str) -> Translate:
        """How a place translates."""
        export = self.export(PLACES[place].to, quantization)
        if place == "transformers.js":
            dtype = {"float32": "fp32", "int8": "q8"}[quantization]
            command = ["node", PEERS / "transformers_js.mjs", self.given.node_modules, export, dtype]
            return lambda lines: spoken(command, lines)
        if place == "argos":
            return lambda lines: spoken([self.given.argos, PEERS / "argos.py", export, *self.langs], lines)
        ours = self.translator.plan(TranslateOptions(**SEARCHES[search]), guard=False)
        plan = self.translator.with_engine(ours, opened(self.translator, export).searcher)
        return lambda lines: [one.text for one in self.translator.translate_planned(lines, plan)]

    def known(self, name: str) -> Any:
        """What has been found, in this call or before; None: nothing."""
        path = self.folder / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def keep(self, name: str, found: Any) -> None:
        """Keep what has been found."""
        (self.folder / f"{name}.json").write_text(json.dumps(found), encoding="utf-8")

    def figures(self, place: str, quantization: str, search: str) -> None:
        """A place beside ours, once all is translated; kept too, as significance takes its time."""
        label = f"{place}, {quantization}"
        if self.known(f"{label}.{search}"):
            return
        ours, n = self.ours(search), self.given.page_lines if place == "page" else None
        theirs = ours and self.texts(label, search, self.theirs(place, quantization, search), n)
        if not ours or not theirs:
            return
        found = beside(self.translator, self.lines[:n], ours[:n], theirs, self.refs[:n])
        if search == "greedy" and place != "transformers.js":
            found |= self.read(place, quantization, ours)
        self.keep(f"{label}.{search}", found)

    def read(self, place: str, quantization: str, texts: Sequence[str]) -> dict[str, Any]:
        """By how many nats the log-probability of a token differs, of the same translations."""
        plan = self.translator.plan(TranslateOptions(), guard=False)
        engine = opened(self.translator, self.export(PLACES[place].to, quantization)).searcher
        apart = token_differences(self.translator, plan, engine, self.lines[:READ], texts[:READ])
        return {"tokens_read": len(apart), "most_nats": max(apart), "mean_nats": sum(apart) / len(apart)}

    def page(self) -> dict[str, Any]:
        """Size of the page in int8, and its first translation in Chromium."""
        from playwright.sync_api import sync_playwright

        from benchmarks.questions.translator_page import timed

        file = next(self.export("page", "int8").glob("*.html"))
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=self.given.chromium, args=["--no-sandbox"])
            found = {"chromium": browser.version, **timed(browser, file, TWELVE)}
            browser.close()
        note = {"note": self.given.note} if self.given.note else {}
        return {"megabytes": round(file.stat().st_size / 1e6, 2), "text": TWELVE, **found, **note}


def beside(
    translator: Translator, lines: Sequence[str], ours: Sequence[str], theirs: Sequence[str], refs: Sequence[str]
) -> dict[str, Any]:
    """Scores of both, how many are identical, and how often theirs is more probable by our model where they are not."""
    other = [i for i in range(len(ours)) if ours[i] != theirs[i]]
    sources = [lines[i] for i in other]
    sums = [[one.log_prob for one in translator.score(sources, [texts[i] for i in other])] for texts in (ours, theirs)]
    gaps = [b - a for a, b in zip(*sums, strict=True)]
    found = compare(ours, theirs, refs, translator.config.data.tgt_lang)
    return {
        "lines": len(ours), "identical": len(ours) - len(other),
        "of_the_others_theirs_more_probable": sum(gap > 0 for gap in gaps),
        "greatest_gap_in_nats": max(map(abs, gaps), default=None),
        **{one.metric: {"ours": round(one.a, 2), "theirs": round(one.b, 2), "p": round(one.p_randomisation, 4)}
           for one in found},
    }  # fmt: skip


def spoken(command: Sequence[str | Path], lines: Sequence[str]) -> list[str]:
    """What a program answers to lines."""
    done = subprocess.run([*map(str, command)], input="".join(f"{line}\n" for line in lines), text=True,
                          capture_output=True, check=False)  # fmt: skip
    if done.returncode:
        sys.exit(f"{command[0]}: {done.stderr[-2000:]}")
    return done.stdout.removesuffix("\n").split("\n")


def versions(given: argparse.Namespace) -> dict[str, str]:
    """Of what is no package of this environment."""
    found = {}
    if given.node_modules:
        about = given.node_modules / "node_modules/@huggingface/transformers/package.json"
        found["transformers.js"] = json.loads(about.read_text(encoding="utf-8"))["version"]
    if given.argos:
        names = "argos-translate-lt", "ctranslate2"
        asked = f"import importlib.metadata as m; print(*map(m.version, {names}))"
        said = subprocess.run([given.argos, "-c", asked], text=True, capture_output=True, check=True).stdout.split()
        found["argos"] = ", ".join(f"{name} {number}" for name, number in zip(names, said, strict=True))
    return found


def arguments() -> argparse.Namespace:
    """What the command is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--src", type=Path, required=True, help="text to translate")
    parser.add_argument("--ref", type=Path, required=True, help="its references")
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for exports and translations, kept between calls"
    )
    parser.add_argument("--place", nargs="+", choices=[OURS, *PLACES, CHROMIUM], default=[*PLACES, CHROMIUM])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing new after so long")
    parser.add_argument("--node-modules", type=Path, help="a folder with node_modules/@huggingface/transformers")
    parser.add_argument("--argos", type=Path, help="python of an environment with Argos Translate")
    parser.add_argument("--page-lines", type=int, help="only so many of the first lines by the page, which is slow")
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    parser.add_argument("--note", default="", help="what else ran on the machine, if --place chromium")
    given = parser.parse_args()
    for place, needed in (("transformers.js", "node_modules"), ("argos", "argos"), (CHROMIUM, "chromium")):
        if place in given.place and not getattr(given, needed):
            parser.error(f"--place {place} needs --{needed.replace('_', '-')}")
    return given


def main() -> None:
    """Measure and record."""
    given = arguments()
    work = Work(given)
    for place in given.place:
        if place == OURS:
            for search in SEARCHES:
                work.ours(search)
        elif place == CHROMIUM:
            work.keep("page in Chromium", work.page())
        else:
            for search, quantization in product(PLACES[place].searches, PLACES[place].quantizations):
                work.figures(place, quantization, search)
    work.keep("versions", {**(work.known("versions") or {}), **versions(given)})
    labels = [f"{place}, {quantization}" for place, about in PLACES.items() for quantization in about.quantizations]
    found = {label: {one: kept for one in SEARCHES if (kept := work.known(f"{label}.{one}"))} for label in labels}
    found |= {name: work.known(name) for name in ("page in Chromium", "versions")}
    figures = {"bundle": work.translator.manifest["sha256"], **{name: one for name, one in found.items() if one}}
    texts = f"--src {given.src.name} --ref {given.ref.name}"
    command = f"python -m benchmarks.questions.six_places --run {given.run.name} {texts}"
    save(NAME, figures, command, ("torch", "ctranslate2", "transformers", "onnxruntime", "sentencepiece"))


if __name__ == "__main__":
    main()
