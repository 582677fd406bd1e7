"""Every command that writes files, as the harness of kills calls it, and the commands that write none.

A command that is added to the command line must stand here, or in ``WRITES_NOTHING``: ``test_kills.py`` sees to it. The
files that a call reads are made by ``kill_commands.py``: ``tiny`` (a run), ``train.en``, ``test.en`` and others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

WRITES_NOTHING = {
    "formats": ("formats",),
    "score": ("score", "tiny", "--src", "test.en", "--ref", "test.de"),
    "lab": ("lab",),
    "runs": ("runs", "tiny"),
    "translate": ("translate", "tiny", "test.en", "--beam-size", "1"),
}
"""Calls that write no file. Of some commands other calls do."""

TIMES = (
    r'"(time|seconds|date|tokens_per_second|[a-z_]*_per_second|[a-z_]*seconds[a-z_]*|[a-z_]*memory[a-z_]*)": [^,}\n]+'
)
"""Entries of JSON files that no two calls give alike: moments, speeds and what follows from them."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call that writes files below the folder that it is called in."""

    words: tuple[str, ...]
    other: tuple[str, ...] = ()
    """The call with other options; () if it has none that change a file."""
    first: tuple[tuple[str, ...], ...] = ()
    """Calls that go before it."""
    varies: tuple[tuple[str, str], ...] = ()
    """Files, by a pattern of their name, in which what matches the second pattern is different at each call."""
    keeps: bool = False
    """True if the call never replaces what a call with other options has finished: it refuses then."""


_TRAINED = (
    (r"log\.jsonl$", r".+"),
    (r"state\.json$", TIMES),
    (r"checkpoints/step_\d+/manifest\.json$", r"(?s).+"),  # it has the sum of state.json
)
_DISTILLED = (
    (r"distillation\.json$", r".+"),
    (r"bundle/manifest\.json$", r"(?s).+"),
    (r"exports/.*manifest\.json$", r"(?s).+"),
    *_TRAINED,
)
_AUGMENT = ("augment", "--forward", "tiny", "--src", "test.en", "--out", "made", "--beam-size", "1", "--max-ratio", "9")
_DISTILL = (
    "distill", "tiny", "--src", "train.en", "--ref", "train.de", "--out", "student", "--beam-size", "1", "--preset",
    "student-tiny",
    *(word for name in ("train.max_steps=4", "train.save_every=2", "train.validate_every=2", "train.batch_tokens=500",
                        "model.d_model=16", "model.n_heads=2", "model.d_ff=16", "train.average=0",
                        "train.precision=fp32")
      for word in ("--set", name)),
)  # fmt: skip

_MEMORY = ("--memory", "8")

_DEMO = (
    "demo", "--out", "demo",
    *(word for name in ("train.max_steps=2", "train.max_minutes=null", "train.warmup_steps=1", "train.batch_tokens=500",
                        "model.d_model=16", "model.d_ff=16", "data.tokenizer.vocab_size=400", "decode.beam_size=1",
                        "train.precision=fp32")
      for word in ("--set", name)),
)  # fmt: skip

CALLS = {
    "train": Call(
        words=("train", "tiny.yaml", "--out", "run"),
        other=("train", "tiny.yaml", "--out", "run", "--set", "model.d_ff=32"),
        varies=_TRAINED,
        keeps=True,
    ),
    "train, text held out": Call(
        words=("train", "tiny.yaml", "--out", "run", "--set", "data.valid=null", "--set", "train.max_steps=2"),
        varies=_TRAINED,
        keeps=True,
    ),
    "train, of another run": Call(
        words=("train", "from.yaml", "--from-run", "tiny", "--out", "run", "--set", "train.max_steps=2"),
        varies=_TRAINED,
        keeps=True,
    ),
    "train --resume": Call(
        first=(("train", "tiny.yaml", "--out", "run", "--set", "train.max_steps=4"),),
        words=("train", "--out", "run", "--resume", "--set", "train.max_steps=8"),
        varies=_TRAINED,
    ),
    "augment": Call(words=_AUGMENT, other=(*_AUGMENT, "--drop-worst", "0.4")),
    "augment, both directions": Call(
        first=(("train", "back.yaml", "--out", "back", "--set", "train.max_steps=150"),),
        words=(*_AUGMENT, "--back", "back", "--tgt", "test.de"),
        other=(*_AUGMENT, "--back", "back", "--tgt", "test.de", "--drop-worst", "0.4"),
    ),
    "distill": Call(words=_DISTILL, varies=_DISTILLED),
    "distill, with references": Call(
        words=(*_DISTILL, "--with-references", "--valid-src", "valid.en", "--valid-ref", "valid.de"), varies=_DISTILLED
    ),
    "translate": Call(
        words=("translate", "tiny", "test.en", "--beam-size", "1", "--out", "out.de"),
        other=("translate", "tiny", "test.en", "--beam-size", "2", "--out", "out.de"),
    ),
    "translate, compressed": Call(words=("translate", "tiny", "test.en", "--beam-size", "1", "--out", "out.de.gz")),
    "translate, a document": Call(
        words=("translate", "tiny", "book.md", "--beam-size", "1", "--out", "buch.md"),
        other=("translate", "tiny", "book.md", "--beam-size", "2", "--out", "buch.md"),
    ),
    "translate, a folder": Call(words=("translate", "tiny", "books", "--beam-size", "1", "--out", "buecher")),
    "translate, shards": Call(  # by the code of Ray's actors; see ``cluster_here.py``
        words=("translate", "tiny", "shards", "--ray", "local", "--beam-size", "1", "--out", "scherben"),
        other=("translate", "tiny", "shards", "--ray", "local", "--beam-size", "2", "--out", "scherben"),
        varies=((r"_dragoman\.jsonl$", r'"seconds": [\d.]+'),),
        keeps=True,
    ),
    "translate, alignments": Call(
        words=("translate", "tiny", "test.en", "--beam-size", "1", "--alignments", "links"),
        other=("translate", "tiny", "test.en", "--beam-size", "2", "--alignments", "links"),
    ),
    "translate, warnings": Call(
        words=("translate", "tiny", "test.en", "--beam-size", "1", "--warnings", "notes"),
        other=("translate", "tiny", "test.en", "--beam-size", "2", "--warnings", "notes"),
    ),
    "score": Call(words=("score", "tiny", "--src", "test.en", "--ref", "test.de", "--alignments", "links")),
    "evaluate": Call(
        words=("evaluate", "tiny", "--src", "test.en", "--ref", "test.de", "--beam-size", "1", "--out", "out.de"),
        other=("evaluate", "tiny", "--src", "test.en", "--ref", "test.de", "--beam-size", "2", "--out", "out.de"),
        varies=((r"evaluations\.jsonl$", r".+"),),  # a line for each time that a test set was read
    ),
    "report": Call(
        words=("report", "tiny", "--out", "report.html"),
        other=("report", "tiny", "--ref", "test.de", "--outputs", "test.de", "--out", "report.html"),
    ),
    "calibrate": Call(words=("calibrate", "tiny", "--src", "train.en", "--ref", "train.de")),
    "explain": Call(words=("explain", "tiny", "the dog runs", "--out", "figures")),
    "explain, a page": Call(words=("explain", "tiny", "the dog runs", "--out", "figure.html")),
    "doctor": Call(
        words=("doctor", "train.en", "train.de", "--out", "report", "--memory", "8"),
        varies=((r"doctor\.html$", r"about [\d.]+ GiB|up to [\d,]+ tokens"),),  # a measured step
    ),
    "doctor, mended text": Call(
        words=("doctor", "train.en", "train.de", "--write", "mended.en", "mended.de", "--list", "list.tsv", *_MEMORY)
    ),
    "demo": Call(words=_DEMO, varies=_TRAINED, keeps=True),
    "lab": Call(
        words=("lab", "masks", "--quick", "--out", "lab"),
        varies=((r"numbers\.json$", r".+"), (r"index\.html$", r"(?s).+"), (r"parts/", TIMES), *_TRAINED),
    ),
    "export huggingface": Call(
        words=("export", "tiny", "--format", "huggingface"),
        other=("export", "tiny", "--format", "huggingface", "--out", "tiny/exports/huggingface-float32"),
    ),
    "export ctranslate2": Call(
        words=("export", "tiny", "--format", "ctranslate2", "--out", "out"),
        other=("export", "tiny", "--format", "ctranslate2", "--out", "out", "--quantization", "int8"),
    ),
    "export ctranslate2, checked": Call(
        words=("export", "tiny", "--format", "ctranslate2", "--out", "out", "--check", "test.en"),
        varies=((r"certificate\.json$", r".+"), (r"README\.md$", r"\d+\.\d+")),
    ),
    "export onnx": Call(
        words=("export", "tiny", "--format", "onnx", "--out", "out"),
        other=("export", "tiny", "--format", "onnx", "--out", "out", "--quantization", "int8"),
    ),
    "export argos": Call(
        words=("export", "tiny", "--format", "argos", "--out", "out"),
        other=("export", "tiny", "--format", "argos", "--out", "out", "--quantization", "int8"),
    ),
    "export argos, one file": Call(words=("export", "tiny", "--format", "argos", "--out", "out/m.argosmodel")),
    "export page": Call(
        words=("export", "tiny", "--format", "page", "--out", "out/page.html"),
        other=("export", "tiny", "--format", "page", "--out", "out/page.html", "--quantization", "int8"),
    ),
    "export page, a folder": Call(words=("export", "tiny", "--format", "page", "--out", "out")),
    "import huggingface": Call(
        first=(("export", "tiny", "--format", "huggingface", "--out", "model"),),
        words=("import", "model", "--out", "imported"),
        other=("import", "model", "--out", "imported", "--keep-pieces-of", "test.en"),
        keeps=True,
    ),
    "import ctranslate2": Call(
        first=(("export", "tiny", "--format", "ctranslate2", "--out", "model"),),
        words=("import", "model", "--out", "imported"),
        keeps=True,
    ),
    "import argos": Call(
        first=(("export", "tiny", "--format", "argos", "--out", "model.argosmodel"),),
        words=("import", "model.argosmodel", "--out", "imported"),
        keeps=True,
    ),
    "import marian": Call(words=("import", "marian", "--out", "imported"), keeps=True),
    "serve": Call(
        words=("serve", "--keys", "keys", "--make-key", "alice"), varies=((r"keys$", r"[0-9a-f]{64}"),), keeps=True
    ),
}

ADVICE: tuple[tuple[str, str], ...] = (
    (r"^error: run already holds a run: go on with --resume", "resume"),
    (r"^error: (demo) already holds a run: go on with --resume", "add"),
    (r"^error: run: nothing to resume, no such run; leave out --resume", "begin"),
    (r"^error: .*: was translated with another .*; choose another folder, or start over with --restart", "restart"),
    (r"this unfinished file was started with .*; restore it, or start over with --restart$", "restart"),
    (r"^error: (\S+): already exists; choose another --out, or remove it", "remove"),
    (r"^error: (\S+) already holds a run: delete it, or choose another --out", "remove"),
    (r"^error: (keys) already has a key named alice: choose another name, or delete its line", "remove"),
)
"""What a refusal says is to be done, and what the harness does then."""


def advice_of(line: str) -> tuple[str, str] | None:
    """Return what to do by a refusal, and with which file; None if it says nothing that the harness knows."""
    for pattern, action in ADVICE:
        if match := re.search(pattern, line):
            return action, match[1] if match.groups() else ""
    return None
