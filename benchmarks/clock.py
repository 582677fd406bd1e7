"""Quality by the clock: what a user has after 3, 10 and 30 minutes of two cores, here and with the peers.

    python -m benchmarks.clock --data DATA --corpora multi30k tatoeba-en-de --systems dragoman Marian JoeyNMT Eole

The clock runs from the two raw files: learning subwords, preparing and validating count. ``dragoman train --minutes``
starts once for each limit and seed, with half a minute less, so that the whole command ends by then; a peer trains once
until the last limit, and what counts at a limit is the checkpoint that it had finished by then. Translating the test
set, by each one's own beam search of 5, does not count.
Nothing else may run meanwhile. What is there already, in the folder of ``--runs``, of the same text and settings, is
not made again. A peer is installed before the clock runs. The record keeps what this machine has measured of other
corpora and systems.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness.arguments import command
from benchmarks.harness.clock_peers import PEERS, RECIPE, VALIDATE_EVERY, WARMUP, Job, shape_of
from benchmarks.harness.command import watched
from benchmarks.harness.corpus import MULTI30K_TEST
from benchmarks.harness.environments import ROOT
from benchmarks.harness.peer import precisions
from benchmarks.harness.runs import dragoman, refuse_another
from benchmarks.record import RESULTS, machine, save
from dragoman.evaluation.metrics import bleu, chrf

POLL_S = 1.0
WHOLE_S = 3.0
"""A checkpoint that has not changed for so long is whole."""
AROUND_MIN = 0.5
"""Minutes of ``dragoman train`` outside what ``--minutes`` limits: imports, subwords, the last checks of the bundle."""


class Text(NamedTuple):
    """A corpus, by the stems of its files."""

    name: str
    src: str
    tgt: str
    train: Path
    valid: Path
    test: Path


def text_of(data: Path, name: str, folder: Path) -> Text:
    """Return a corpus of ``data``; where it has one set for validation and test, each gets half of the lines."""
    src, tgt = ("en", "de") if name == "multi30k" else name.rsplit("-", 2)[1:]
    if name == "multi30k":
        return Text(name, src, tgt, *(data / name / stem for stem in ("train", "val", MULTI30K_TEST)))
    folder.mkdir(parents=True, exist_ok=True)
    for lang in (src, tgt):
        lines = (data / name / f"dev.{lang}").read_bytes().split(b"\n")[:-1]
        for part, chosen in (("valid", lines[0::2]), ("test", lines[1::2])):
            (folder / f"{part}.{lang}").write_bytes(b"".join(line + b"\n" for line in chosen))
    return Text(name, src, tgt, data / name / "train", folder / "valid", folder / "test")


def texts_of(named: Text | Job) -> list[str]:
    """Return the files that a system learns from."""
    return [f"{stem}.{lang}" for stem in (named.train, named.valid) for lang in (named.src, named.tgt)]


def scores(text: Text, translated: Path) -> dict[str, Any]:
    """Return cased BLEU, with the interval of 1,000 bootstrap samples, and chrF of a translation of the test set."""
    hypotheses, references = (
        path.read_text(encoding="utf-8").split("\n")[:-1] for path in (translated, Path(f"{text.test}.{text.tgt}"))
    )
    if len(hypotheses) != len(references):
        raise SystemExit(f"{translated} has {len(hypotheses)} lines, the test set {len(references)}")
    found = bleu(hypotheses, references, text.tgt, interval=True)
    assert found.low is not None
    assert found.high is not None
    return {
        "BLEU": round(found.value, 2), "interval": [round(found.low, 2), round(found.high, 2)],
        "chrF": round(chrf(hypotheses, references).value, 2),
    }  # fmt: skip


# --- the peers --------------------------------------------------------------------------------------------------------


def newest_checkpoint(folder: Path, pattern: str, before: float) -> tuple[Path, float] | None:
    """Return the newest whole checkpoint, and when it was finished, in seconds since 1970."""
    times = []
    for path in folder.glob(pattern):
        files = [path, *path.rglob("*")] if path.is_dir() else [path]
        times.append((max(file.stat().st_mtime for file in files), path))
    whole = [(path, when) for when, path in sorted(times) if when <= before and time.time() - when > WHOLE_S]
    return whole[-1] if whole else None


def _copy(path: Path, to: Path) -> None:
    shutil.rmtree(to.parent, ignore_errors=True)
    to.parent.mkdir(parents=True)
    if path.is_dir():
        shutil.copytree(path, to)
    else:
        shutil.copy(path, to)


def train_peer(name: str, job: Job, limits: Sequence[float]) -> dict[str, dict[str, Any] | None]:
    """Train a peer until the last limit, in minutes; return the checkpoint of each limit, and its minutes."""
    peer = PEERS[name]
    peer.install()
    began, kept = time.time(), dict[str, dict[str, Any] | None]()
    argv = peer.prepare(job)
    with (job.folder / "training.txt").open("wb") as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "2"},
        )  # fmt: skip
        try:
            for limit, last in _checkpoints(process, name, job, began, limits):
                kept[f"{limit:g}"] = last
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    (job.folder / "kept.json").write_text(json.dumps(kept), encoding="utf-8")
    return kept


def _checkpoints(
    process: subprocess.Popen[bytes], name: str, job: Job, began: float, limits: Sequence[float]
) -> Iterator[tuple[float, dict[str, Any] | None]]:
    """Yield the newest checkpoint at each limit, copied, and its minutes; None where there is none yet."""
    last: tuple[Path, float] | None = None
    copy = job.folder / "last"
    for limit in limits:
        due = began + 60 * limit
        while time.time() < due + WHOLE_S + POLL_S:
            if process.poll() is not None:
                raise SystemExit(f"{name} has ended: see {job.folder / 'training.txt'}")
            with contextlib.suppress(FileNotFoundError):  # the peer removes an older one meanwhile
                newest = newest_checkpoint(job.folder, PEERS[name].checkpoints, due)
                if newest is not None and newest != last:
                    _copy(newest[0].resolve(), copy / newest[0].resolve().name)
                    last = newest
            time.sleep(POLL_S)
        if last is None:
            yield limit, None
            continue
        chosen = job.folder / f"at-{limit:g}"
        shutil.rmtree(chosen, ignore_errors=True)
        shutil.copytree(copy, chosen)
        yield limit, {"checkpoint": str(next(iter(chosen.iterdir()))), "minutes": round((last[1] - began) / 60, 2)}


def peer_figures(name: str, text: Text, job: Job, limits: Sequence[float]) -> dict[str, Any]:
    """Return the scores of a peer at each limit, a list of one; an empty one where it had no checkpoint yet."""
    folder = job.folder
    facts = {"limits": list(limits), "precision": job.precision, "shape": job.shape._asdict()}
    refuse_another(folder, facts, texts_of(job))
    if (folder / "kept.json").is_file():
        kept = json.loads((folder / "kept.json").read_text(encoding="utf-8"))
    else:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        kept = train_peer(name, job, limits)
    figures: dict[str, Any] = {}
    for limit in (f"{limit:g}" for limit in limits):
        last = kept[limit]
        if last is None:
            figures[limit] = []
            continue
        translated = folder / f"at-{limit}.{text.tgt}"
        PEERS[name].translate(job, Path(last["checkpoint"]), Path(f"{text.test}.{text.src}"), translated)
        figures[limit] = [{"minutes": last["minutes"], **scores(text, translated)}]
    return figures


# --- dragoman ---------------------------------------------------------------------------------------------------------


def our_figures(
    text: Text, folder: Path, limits: Sequence[float], seeds: Sequence[int], settings: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the scores of ``dragoman train --minutes`` at each limit, of each seed."""
    figures: dict[str, Any] = {}
    for limit in limits:
        found = []
        for seed in seeds:
            run = folder / f"{limit:g}-{seed}"
            translated = run.with_suffix(f".{text.tgt}")
            facts = {"minutes": limit, "seed": seed, "around": AROUND_MIN, "settings": settings}
            refuse_another(run, facts, texts_of(text))
            if not (run / "bundle").is_dir():
                shutil.rmtree(run, ignore_errors=True)
                folder.mkdir(parents=True, exist_ok=True)
                argv = dragoman(
                    "train", "--src", f"{text.train}.{text.src}", "--tgt", f"{text.train}.{text.tgt}",
                    "--valid-src", f"{text.valid}.{text.src}", "--valid-tgt", f"{text.valid}.{text.tgt}",
                    "--minutes", f"{limit - AROUND_MIN:g}", "--set", f"train.seed={seed}",
                    *(part for setting in settings for part in ("--set", setting)), "--out", run,
                )  # fmt: skip
                done = watched(argv, run.with_suffix(".txt"))
                run.with_suffix(".seconds").write_text(f"{done.seconds:.0f}", encoding="ascii")
            argv = dragoman("translate", run, f"{text.test}.{text.src}", "--out", translated)
            subprocess.run(argv, check=True, stderr=subprocess.DEVNULL)
            seconds = int(run.with_suffix(".seconds").read_text(encoding="ascii"))
            found.append({"seed": seed, "minutes": round(seconds / 60, 2), **scores(text, translated)})
        figures[f"{limit:g}"] = found
    return figures


def main() -> None:
    """Train, translate, score, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder with multi30k/ and other corpora")
    parser.add_argument("--corpora", nargs="+", default=["multi30k", "tatoeba-en-de"])
    parser.add_argument("--systems", nargs="+", default=["dragoman", *PEERS], choices=["dragoman", *PEERS])
    parser.add_argument("--minutes", nargs="+", type=float, default=[3, 10, 30])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument(
        "--like",
        type=Path,
        metavar="RUN",
        help="a run of `train --minutes`: peers get its sizes, subwords, dropout and highest rate, in --runs/like-NAME",
    )
    parser.add_argument("--set", dest="settings", action="append", default=[], help="a setting of ours, A.B=C")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs/clock", help="where all is kept")
    args = parser.parse_args()
    able, _ = precisions()
    shape = shape_of(args.like) if args.like else RECIPE
    corpora: dict[str, Any] = {}
    for name in args.corpora:
        folder = args.runs / name
        text = text_of(args.data, name, folder)
        corpora[name] = {}
        for system in args.systems if not args.like else [system for system in args.systems if system in PEERS]:
            to = folder / f"like-{args.like.name}" / system if args.like else folder / system
            corpora[name][system] = (
                our_figures(text, to, args.minutes, args.seeds, args.settings)
                if system == "dragoman"
                else peer_figures(
                    system, text, Job(to, text.src, text.tgt, text.train, text.valid, able[0], shape), args.minutes
                )
            )
            print(json.dumps({name: {system: corpora[name][system]}}), file=sys.stderr, flush=True)
    versions = {name: peer.package for name, peer in PEERS.items() if name in args.systems}
    peers = {
        **shape._asdict(), "warmup_updates": WARMUP,
        "updates_between_validations": VALIDATE_EVERY, "versions": versions,
    }  # fmt: skip
    record = "clock_smaller" if args.like else "clock"
    figures = with_earlier(record, {"corpora": corpora, "peers": peers})
    save(record, figures, command("clock", parser, args), ("torch", "sacrebleu", "sentencepiece"))


def with_earlier(record: str, figures: dict[str, Any]) -> dict[str, Any]:
    """Add what the record of this machine has of other corpora, systems and limits, measured with the same shapes."""
    path = RESULTS / f"{record}.json"
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if earlier.get("machine") != machine():
        return figures
    before, peers = earlier["figures"], figures["peers"]
    if any(before["peers"].get(name) != peers[name] for name in peers if name != "versions"):
        return figures
    for corpus, systems in before["corpora"].items():
        of_corpus = figures["corpora"].setdefault(corpus, {})
        for system, limits in systems.items():
            new = of_corpus.setdefault(system, {})
            for limit, rows in limits.items():
                found = new.setdefault(limit, rows)
                seeds = {None, *(row.get("seed") for row in found)}  # a peer has none, and one training
                new[limit] = found if found is rows else [r for r in rows if r.get("seed") not in seeds] + found
            of_corpus[system] = {limit: new[limit] for limit in sorted(new, key=float)}
    versions = {**before["peers"].get("versions", {}), **peers["versions"]}
    return {**before, **figures, "peers": {**before["peers"], **peers, "versions": versions}}


if __name__ == "__main__":
    main()
