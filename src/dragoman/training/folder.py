"""The folder of a run: claimed by one process, resumed, started again by torchrun, followed by the other ranks."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from dragoman.bundle import load_tokenizers
from dragoman.config import Config
from dragoman.data.tokenizer import Tokenizer
from dragoman.device import resolve_device, resolve_precision
from dragoman.errors import BundleError, ConfigError, DragomanError
from dragoman.files import locked, refuse_if_locked, write_text
from dragoman.progress import Ticker
from dragoman.training.checkpoint import list_checkpoints
from dragoman.training.distributed import launch_name
from dragoman.training.finetune import PARENT
from dragoman.training.preparation import check_prepared, check_trainable

LAUNCH = "launch"
"""Which call of torchrun began the run, so that a restart by the same call goes on with it."""

RESUMABLE = (
    "max_steps", "max_epochs", "max_minutes", "patience", "max_bad_steps", "validate_every", "log_every", "tensorboard",
    "accumulate", "device",
)  # fmt: skip
"""Settings of ``train`` that may change when a run is resumed; any other would make it another run."""

ANOTHER_RUN = (
    "cannot change when a run is resumed (that would be another run); "
    f"of train, {', '.join(RESUMABLE)} can, and all of decode"
)


class Ready(NamedTuple):
    """A run folder in which training can begin, or go on."""

    config: Config
    tokenizers: tuple[Tokenizer, Tokenizer]
    resume: bool = False
    start: Mapping[str, Tensor] | None = None  # weights to begin with


@contextlib.contextmanager
def claimed(run: Path) -> Iterator[None]:
    """Make the folder of a new run, which no other process trains in while this is open.

    If the body fails before training has begun, nothing of it stays.

    Raises:
        ConfigError: A run is there or being made there, or the folder cannot be written.
    """
    refuse_a_run(run)
    new = [folder for folder in (run, *run.parents) if not folder.exists()]
    with _undone(lambda: _remove_empty(new)):
        try:
            run.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{run}: cannot write there ({error.strerror or error}); choose another --out") from None
        with locked(run):
            _refuse_what_is_there(run)  # which another process may have made by now
            ours = [run / name for name in ("config.yaml", PARENT, LAUNCH, "store") if not (run / name).exists()]
            had_log = (run / "log.jsonl").exists()
            with _undone(lambda: _clear(run, ours, had_log)):
                yield


@contextlib.contextmanager
def reopened(run: Path, config: Config) -> Iterator[None]:
    """Let a run go on by ``config``, with no other process training there while this is open.

    If the body fails before there is another checkpoint, the configuration is put back.

    Raises:
        ConfigError: Another process trains there.
    """
    with locked(run):
        before, saved = list_checkpoints(run / "checkpoints"), (run / "config.yaml").read_text(encoding="utf-8")

        def put_back() -> None:
            if list_checkpoints(run / "checkpoints") == before:  # nothing came of these settings
                write_text(run / "config.yaml", saved)

        write_text(run / "config.yaml", config.to_yaml())
        with _undone(put_back):
            yield


@contextlib.contextmanager
def _undone(undo: Callable[[], None]) -> Iterator[None]:
    """If the body fails, ``undo``, as far as that can be done."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError, DragomanError):
            undo()
        raise


def _clear(run: Path, ours: Sequence[Path], had_log: bool) -> None:
    """Remove what a run that has not begun to train has made: ``ours``."""
    if had_log or not (run / "log.jsonl").exists():
        for path in ours:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders from the innermost out, up to the first that is not empty."""
    for folder in folders:
        folder.rmdir()


def refuse_a_run(run: Path) -> None:
    """Refuse a folder that holds a run, or in which another process makes one.

    Raises:
        ConfigError: It does.
    """
    refuse_if_locked(run)
    _refuse_what_is_there(run)


def _refuse_what_is_there(run: Path) -> None:
    if any((run / name).exists() for name in ("config.yaml", "checkpoints", "bundle")):
        if list_checkpoints(run / "checkpoints"):
            raise ConfigError(f"{run} already holds a run: go on with --resume, or choose another --out")
        raise ConfigError(f"{run} holds a run without a checkpoint: delete it if it has ended, or choose another --out")


def ready_to_resume(run: Path, overrides: Sequence[str], accept_changed_text: bool, ticker: Ticker) -> Ready:
    """Make ready a run as it was, with its own configuration, subwords and stores; only what may change is changed.

    Raises:
        BundleError: There is nothing to resume, or it is damaged.
        ConfigError: A setting would make it another run, or cannot be had here.
        DataError: The text has changed.
    """
    if not list_checkpoints(run / "checkpoints"):
        what = "no checkpoint yet; delete it" if (run / "config.yaml").is_file() else "no such run; leave out --resume"
        raise BundleError(f"{run}: nothing to resume, {what} to start again")
    saved = Config.from_yaml(run / "config.yaml")
    config = Config.from_yaml(run / "config.yaml", overrides)
    try:
        device = resolve_device(config.train.device)
    except ConfigError as error:  # the one of the run is not here
        raise ConfigError(f"{error}; that is --set train.device=cpu, and not bit for bit the run that it was") from None
    moved = device.type != saved.train.device
    if not moved and config.train.precision == "auto":  # which is what it was made into when the run began
        config = config.model_copy(
            update={"train": config.train.model_copy(update={"precision": saved.train.precision})}
        )
    _refuse_another_run(saved, config, moved)
    settings = {"device": device.type, "precision": config.train.precision}
    if moved:  # what was fast there may be emulated here
        chosen = any(override.partition("=")[0].strip() == "train.precision" for override in overrides)
        settings["precision"] = resolve_precision(config.train.precision if chosen else "auto", device)
        ticker.say(
            f"train.device was {saved.train.device} and is {device.type}, computing in {settings['precision']}: from "
            "here on not bit for bit the same run"
        )
    config = config.model_copy(update={"train": config.train.model_copy(update=settings)})
    check_trainable(config)  # decode may have changed
    if config.train.schedule == "cosine" and config.train.max_steps != saved.train.max_steps:
        ticker.say("train.max_steps has changed: the rest of the cosine is another one than the run began with")
    before, now = saved.train, config.train
    is_longer = now.max_minutes and before.max_minutes and now.max_minutes > before.max_minutes
    if is_longer and now.max_steps == before.max_steps:
        fit = now.max_steps * (now.max_minutes or 0) / (before.max_minutes or 1)
        ticker.say(
            f"train.max_minutes is {now.max_minutes:g} now, but train.max_steps still {now.max_steps:,}: if that ends "
            f"it before its time, resume with --set train.max_steps={fit:.0f}"
        )
    return Ready(config, check_prepared(run, accept_changed_text, ticker), resume=True)


def _refuse_another_run(saved: Config, config: Config, moved: bool) -> None:
    """Refuse settings that cannot change when a run is resumed.

    Args:
        moved: The device is another one, and so the precision may be.

    Raises:
        ConfigError: One of them has changed.
    """
    before, now = _settings(saved.model_dump(mode="json")), _settings(config.model_dump(mode="json"))
    may_change = {f"train.{name}" for name in (*RESUMABLE, *(["precision"] if moved else []))}
    for name in [*before, *now]:
        is_other = before.get(name) != now.get(name)
        if is_other and name not in may_change and not name.startswith("decode."):
            raise ConfigError(
                f"--set {name} = {now.get(name)!r}, but the run has {before.get(name)!r}: it {ANOTHER_RUN}"
            )


def _settings(section: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Each setting by its name with dots."""
    found: dict[str, Any] = {}
    for key, value in section.items():
        found |= _settings(value, f"{path}{key}.") if isinstance(value, Mapping) else {f"{path}{key}": value}
    return found


def restarted(run: Path, ticker: Ticker) -> bool:
    """Whether this very call of torchrun began the run and now tries again; without a checkpoint it begins again."""
    name, mark = launch_name(), run / LAUNCH
    if name is None or not mark.is_file() or mark.read_text(encoding="utf-8", errors="replace") != name:
        return False
    if list_checkpoints(run / "checkpoints"):
        ticker.say("started again by torchrun: going on from the last checkpoint, as with --resume")
        return True
    ticker.say("started again by torchrun before the first checkpoint: beginning again")
    begin_again(run)
    return False


def begin_again(run: Path) -> None:
    """Remove what a process that died before its first checkpoint left of a run.

    Raises:
        ConfigError: Another process trains there.
    """
    refuse_if_locked(run)
    for left in ("config.yaml", "log.jsonl", "samples.txt"):
        (run / left).unlink(missing_ok=True)
    for left in ("checkpoints", "store", "tensorboard"):
        shutil.rmtree(run / left, ignore_errors=True)


def follow(run: Path) -> Ready:
    """What rank 0 has made ready, for the other ranks; whether it resumes, and from which weights, it alone knows."""
    try:
        config = Config.from_yaml(run / "config.yaml")
    except ConfigError as error:
        raise ConfigError(f"{error}; the run folder must be on a file system that all machines share") from None
    return Ready(config, load_tokenizers(run / "store"))
