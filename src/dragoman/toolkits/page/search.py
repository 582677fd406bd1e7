"""Run the search of an exported page with node, ids in and ids out, to compare it with ours.

Users cannot choose it as an engine, as ours is faster. It runs the scripts and weights in the file.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

import torch

from dragoman.bundle import Bundle
from dragoman.config import DecodeConfig
from dragoman.decoding.request import NOT_FINITE, Hypothesis, Progress, SearchResult, SearchSettings, Segment
from dragoman.errors import BundleError, ConfigError, DecodeError
from dragoman.toolkits.engine import Models, Needs, beyond_plain_search
from dragoman.toolkits.page.write import NAME

PAIRS = 32  # scored at a time


class Page:
    """Translator in an HTML file."""

    name: ClassVar[str] = "page"

    def __init__(self, file: Path) -> None:
        """Take a file that ``write.py`` wrote.

        Raises:
            ConfigError: node is not installed.
        """
        self.file, self.node = file, installed_node()

    @classmethod
    def obstacle(cls, models: Models, needs: Needs) -> str:
        """See ``Searcher``."""
        return beyond_plain_search(models, needs)

    def search(
        self, segments: Sequence[Segment], settings: SearchSettings, progress: Progress | None = None
    ) -> SearchResult:
        """See ``Searcher``."""
        decode = settings.decode
        how = {
            "beamSize": decode.beam_size, "alpha": decode.length_penalty, "form": decode.length_penalty_form,
            "patience": decode.patience, "nBest": settings.n_best, "allowUnk": settings.allow_unk,
        }  # fmt: skip
        questions = ({"task": "search", "src": list(segment.ids), "how": how} for segment in segments)
        hypotheses = []
        for answer in self.answers(questions):
            hypotheses.append([Hypothesis(row["ids"], row["score"], row["logProb"]) for row in answer])
            if progress is not None:
                progress(len(hypotheses), len(segments), "sentences translated")
        return SearchResult(hypotheses)

    def read(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[list[float]]:
        """See ``ExportedSearcher``."""
        parts = [pairs[start : start + PAIRS] for start in range(0, len(pairs), PAIRS)]
        questions = ({"task": "read", "pairs": [[list(src), list(tgt)] for src, tgt in part]} for part in parts)
        return [row for answer in self.answers(questions) for row in answer]

    def cut_differently(self, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> list[bool]:
        """See ``ExportedSearcher``."""
        (theirs,) = self.answers([{"task": "encode", "texts": list(texts), "side": "src"}])
        return [list(row) != other for row, other in zip(ids, theirs, strict=True)]

    def answers(self, questions: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
        """Yield the answer of ``pages/translator/node.js`` to each question as soon as it arrives.

        Raises:
            BundleError: The file is damaged.
            DecodeError: The model's scores are not finite.
        """
        script = resources.files("dragoman.pages") / "translator/node.js"
        with resources.as_file(script) as driver, tempfile.TemporaryFile("w+", encoding="utf-8") as lines:
            lines.writelines(json.dumps(question) + "\n" for question in questions)
            lines.seek(0)
            with subprocess.Popen(
                [self.node, str(driver), str(self.file)], stdin=lines, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                encoding="utf-8",
            ) as running:  # fmt: skip
                assert running.stdout is not None
                assert running.stderr is not None
                for line in running.stdout:
                    answer = json.loads(line)
                    if answer is None:
                        raise DecodeError(NOT_FINITE)
                    if isinstance(answer, dict) and "damaged" in answer:
                        raise BundleError(f"{self.file}: {answer['damaged']}; export it again")
                    yield answer
                errors = running.stderr.read()
            if running.returncode:
                raise RuntimeError(f"node ended with {running.returncode}: {errors}")


def check_installed(device: str) -> None:
    """See ``Comparer``."""
    installed_node()


def open_export(export: Path, quantization: str, bundle: Bundle, device: torch.device) -> tuple[Page, str]:
    """See ``Comparer``; the page computes in float32."""
    return Page(export if export.is_file() else export / NAME), "float32"


def why_different(decode: DecodeConfig) -> list[str]:
    """See ``Comparer``: the search is ours, in JavaScript."""
    return []


def installed_node() -> str:
    """Return the path of node.

    Raises:
        ConfigError: It is not installed.
    """
    path = shutil.which("node")
    if path is None:
        raise ConfigError(
            "comparing a page needs node, which is not installed: https://nodejs.org, or leave out --check"
        )
    return path


def program_version() -> tuple[str, str]:
    """See ``Comparer``; the version of node is such as ``20.20.2``."""
    output = subprocess.run([installed_node(), "--version"], capture_output=True, text=True, check=True).stdout
    return "node", output.strip().removeprefix("v")
