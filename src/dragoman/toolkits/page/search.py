"""The search of the page that ``formats.page`` writes, run by node: ids in, ids out, to compare it with ours.

It is no engine to translate with, for ours is faster: an export is compared by it. What runs are the scripts and the
weights that are in the file.
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

from dragoman.decoding.search import NOT_FINITE, Hypothesis
from dragoman.errors import BundleError, ConfigError, DecodeError
from dragoman.toolkits.engine import Alive, Found, Models, Needs, Progress, SearchSettings, Segment, beyond_plain_search

PAIRS = 32  # read at a time


class Page:
    """The translator in an HTML file."""

    name: ClassVar[str] = "page"

    def __init__(self, file: Path) -> None:
        """Take a file that ``formats.page.write`` wrote.

        Raises:
            ConfigError: node is not installed.
        """
        self.file, self.node = file, installed_node()

    @classmethod
    def obstacle(cls, models: Models, needs: Needs) -> str:
        """See ``Searcher``."""
        return beyond_plain_search(models, needs)

    def search(
        self, segments: Sequence[Segment], settings: SearchSettings, alive: Alive | None = None,
        progress: Progress | None = None,
    ) -> Found:  # fmt: skip
        """See ``Searcher``."""
        decode = settings.decode
        how = {
            "beamSize": decode.beam_size, "alpha": decode.length_penalty, "form": decode.length_penalty_form,
            "patience": decode.patience, "nBest": settings.n_best,
            "allowUnk": settings.allow_unk,
        }  # fmt: skip
        asked = ({"task": "search", "src": list(segment.ids), "how": how} for segment in segments)
        found = []
        for one in self.answers(asked):
            found.append([Hypothesis(each["ids"], each["score"], each["logProb"]) for each in one])
            if progress is not None:
                progress(len(found), len(segments), "sentences translated")
        return Found(found)

    def read(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[list[float]]:
        """The log-probability of each token of given translations, in nats, eos last; ids without bos and eos."""
        parts = [pairs[start : start + PAIRS] for start in range(0, len(pairs), PAIRS)]
        asked = ({"task": "read", "pairs": [[list(src), list(tgt)] for src, tgt in part]} for part in parts)
        return [row for answer in self.answers(asked) for row in answer]

    def n_cut_differently(self, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> int:
        """How many texts its own tokenizer cuts otherwise than ours does."""
        (theirs,) = self.answers([{"task": "encode", "texts": list(texts), "side": "src"}])
        return sum(list(row) != other for row, other in zip(ids, theirs, strict=True))

    def answers(self, questions: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
        """What ``pages/translator/node.js`` answers to each question, as soon as it is there.

        Raises:
            BundleError: The file is damaged.
            DecodeError: The model's scores are not finite.
        """
        script = resources.files("dragoman.pages") / "translator/node.js"
        with resources.as_file(script) as driver, tempfile.TemporaryFile("w+", encoding="utf-8") as asked:
            asked.writelines(json.dumps(question) + "\n" for question in questions)
            asked.seek(0)
            with subprocess.Popen(
                [self.node, str(driver), str(self.file)], stdin=asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
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
                said = running.stderr.read()
            if running.returncode:
                raise RuntimeError(f"node ended with {running.returncode}: {said}")


def installed_node() -> str:
    """Where node is.

    Raises:
        ConfigError: It is not installed.
    """
    found = shutil.which("node")
    if found is None:
        raise ConfigError(
            "comparing a page needs node, which is not installed: https://nodejs.org, or leave out --check"
        )
    return found


def node_version() -> str:
    """Which node it is, such as ``20.20.2``.

    Raises:
        ConfigError: It is not installed.
    """
    said = subprocess.run([installed_node(), "--version"], capture_output=True, text=True, check=True).stdout
    return said.strip().removeprefix("v")
