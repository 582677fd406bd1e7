"""One trained model in six places: transformers, CTranslate2, onnxruntime, transformers.js, Argos Translate, a page.

Greedy, and beam 5 with the same length penalty (n ** alpha) and stopping rule (as many finished hypotheses as the beam)
where a place has them: BLEU of each beside ours, and how many translations are identical. transformers.js is greedy;
Argos has a search of its own (beam 4, n ** 0.2), which ours is set to. The size of the page, and its first translation
in Chromium. Fine-tuning and trimming of imported models are in ``benchmarks.imported``.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dragoman
from benchmarks.record import save
from dragoman.data.corpus import read_lines
from dragoman.evaluation.significance import compare
from dragoman.translation.translator import Translator

HERE = Path(__file__).parent
GREEDY: dict[str, Any] = dict(beam_size=1)
BEAM: dict[str, Any] = dict(beam_size=5, length_penalty=1.0, length_penalty_form="power", patience=1.0)
ARGOS: dict[str, Any] = dict(beam_size=4, length_penalty=0.2, length_penalty_form="power", patience=1.0)
CERTIFIED = (("huggingface", "float32"), ("ctranslate2", "float32"), ("onnx", "float32"), ("onnx", "int8"),
             ("ctranslate2", "int8"), ("page", "float32"), ("page", "int8"))  # fmt: skip
TWELVE = "A young man in a blue shirt is standing on a ladder."


def beside(ours: Sequence[str], theirs: Sequence[str], refs: Sequence[str], lang: str | None) -> dict[str, Any]:
    """Scores of both, and how many translations are identical."""
    found = compare(ours, theirs, refs, lang)
    return {
        "lines": len(ours), "identical": sum(a == b for a, b in zip(ours, theirs, strict=True)),
        **{one.metric: {"ours": round(one.a, 2), "theirs": round(one.b, 2)} for one in found},
    }  # fmt: skip


def certified(run: Path, folder: Path, src: Path, ref: Path, search: dict[str, Any]) -> dict[str, Any]:
    """What the certificate says."""
    one = dragoman.certify(run, folder, src=src, ref=ref, device="cpu", quiet=True, **search)
    return {
        "lines": one.n_lines, "identical": one.n_identical, "most_nats": one.most_nats, "mean_nats": one.mean_nats,
        **{each.metric: {"ours": round(each.a, 2), "theirs": round(each.b, 2)} for each in one.comparisons},
        "seconds": one.seconds, "why": one.why,
    }  # fmt: skip


def spoken(command: Sequence[str | Path], lines: Sequence[str]) -> tuple[list[str], str]:
    """What a program answers to lines, and the last line that it says of itself."""
    done = subprocess.run([*map(str, command)], input="".join(f"{line}\n" for line in lines), text=True,
                          capture_output=True, check=False)  # fmt: skip
    if done.returncode:
        sys.exit(f"{command[0]}: {done.stderr[-2000:]}")
    return done.stdout.removesuffix("\n").split("\n"), (done.stderr.strip().split("\n") or [""])[-1]


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--src", type=Path, required=True, help="text to translate")
    parser.add_argument("--ref", type=Path, required=True, help="its references")
    parser.add_argument("--page-lines", type=int, help="only so many of the first lines by the page, which is slow")
    parser.add_argument("--node-modules", type=Path, help="a folder with node_modules/@huggingface/transformers")
    parser.add_argument("--argos", type=Path, help="python of an environment with Argos Translate")
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    parser.add_argument("--note", default="", help="what else ran on the machine")
    given = parser.parse_args()
    lines, refs = list(read_lines(given.src)), list(read_lines(given.ref))
    translator = Translator.load(given.run, "cpu")
    data = translator.config.data
    langs = data.src_lang or "", data.tgt_lang or ""
    figures: dict[str, Any] = {"note": given.note} if given.note else {}

    def ours(search: dict[str, Any]) -> list[str]:
        return [one.text for one in translator.translate(lines, guard=False, **search)]

    with tempfile.TemporaryDirectory() as scratch:
        exports = Path(scratch)
        first = exports / "first.src", exports / "first.ref"
        for file, texts in zip(first, (lines, refs), strict=True):
            file.write_text("".join(f"{line}\n" for line in texts[: given.page_lines]), encoding="utf-8")
        for to, quantization in CERTIFIED:
            text = first if to == "page" else (given.src, given.ref)
            folder = dragoman.export(given.run, to, exports / f"{to}-{quantization}", quantization)
            figures[f"{to}, {quantization}"] = {
                "greedy": certified(given.run, folder, *text, GREEDY),
                "beam 5": certified(given.run, folder, *text, BEAM),
            }
            print(to, quantization, figures[f"{to}, {quantization}"], file=sys.stderr, flush=True)
        if given.node_modules:
            for dtype, quantization in (("fp32", "float32"), ("q8", "int8")):
                folder = dragoman.export(given.run, "onnx", exports / f"js-{quantization}", quantization)
                script = HERE / "peers/transformers_js.mjs"
                theirs, _ = spoken(["node", script, given.node_modules, folder, dtype], lines)
                figures[f"transformers.js, {quantization}"] = {"greedy": beside(ours(GREEDY), theirs, refs, langs[1])}
        if given.argos:
            package = dragoman.export(given.run, "argos", exports / "x.argosmodel", "float32")
            theirs, said = spoken([given.argos, HERE / "peers/argos.py", package, *langs], lines)
            figures["argos, float32"] = {
                "its own search": beside(ours(ARGOS), theirs, refs, langs[1]),
                "versions": said,
            }
        file = next((exports / "page-int8").glob("*.html"))
        figures["page"] = {"megabytes": round(file.stat().st_size / 1e6, 2)}
        if given.chromium:
            from playwright.sync_api import sync_playwright

            from benchmarks.translator_page import timed

            with sync_playwright() as driver:
                browser = driver.chromium.launch(executable_path=given.chromium, args=["--no-sandbox"])
                figures["page"] |= {"text": TWELVE, "chromium": browser.version, **timed(browser, file, TWELVE)}
                browser.close()
    command = f"python -m benchmarks.six_places --run {given.run.name} --src {given.src.name} --ref {given.ref.name}"
    save("six_places", figures, command, ("torch", "ctranslate2", "transformers", "onnxruntime", "sentencepiece"))


if __name__ == "__main__":
    main()
