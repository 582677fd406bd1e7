"""The folder of a run: created by one process, resumed, restarted by torchrun, and read by the other ranks."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from dragoman.bundle import load_tokenizers
from dragoman.config import Config
from dragoman.data.store import ABOUT
from dragoman.data.tokenizer import Tokenizer
from dragoman.device import resolve_device, resolve_precision
from dragoman.errors import BundleError, ConfigError, DragomanError
from dragoman.files import remove_leftovers, write_text
from dragoman.locks import LOCK, LOCK_PREFIX, locked, refuse_if_locked
from dragoman.progress import Ticker
from dragoman.training.checkpoint import list_checkpoints, step_of
from dragoman.training.distributed import World, launch_name, ranks_that_differ
from dragoman.training.finetune import PARENT, PARENT_WORDS
from dragoman.training.given_text import FOLDER as GIVEN
from dragoman.training.preparation import (
    LEXICON,
    PREPARED,
    SUBWORDS,
    check_prepared,
    check_trainable,
    requested_vocab_size,
    with_vocab_size,
)
from dragoman.training.record import read_log
from dragoman.training.schedule import learning_rate

LAUNCH = "launch"
"""Name of the file that says which call of torchrun began the run, so that a restart by it can continue the run."""

NOTICEABLE = 0.01
"""Smallest change of the learning rate that is printed when a run is resumed, as a fraction of it."""

RESUMABLE = (
    "max_steps", "max_epochs", "max_minutes", "patience", "goal", "max_bad_steps", "validate_every", "log_every",
    "tensorboard", "accumulate", "device", "threads", "choose_length_penalty",
)  # fmt: skip
"""Settings of ``train`` that may change when a run is resumed; any other change would make it a different run."""

ANOTHER_RUN = (
    "cannot change when a run is resumed (that would be another run); "
    f"of train, {', '.join(RESUMABLE)} can, and all of decode"
)


class PreparedRun(NamedTuple):
    """A run folder in which training can begin or continue."""

    config: Config
    tokenizers: tuple[Tokenizer, Tokenizer]
    resume: bool = False
    start: Mapping[str, Tensor] | None = None  # weights to begin with


@contextlib.contextmanager
def claimed(run: Path) -> Iterator[None]:
    """Create the folder of a new run, and keep other processes from training in it while the body runs.

    If the body fails before training has begun, everything that it has made is removed. Training has begun once there
    is a checkpoint, or a log that was not there before.

    Raises:
        ConfigError: The folder holds a run or files of others that training would replace, another process is making a
            run there, or it cannot be written.
    """
    refuse_a_run(run)
    new = [folder for folder in (run, *run.parents) if not folder.exists()]
    with _undo_on_error(lambda: _remove_empty(new)):
        try:
            run.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{run}: cannot write there ({error.strerror or error}); choose another --out") from None
        with locked(run):
            _refuse_existing_run(run)  # another process may have made one by now
            _remove_leftovers(run)
            paths, log = _paths_before_training(run), _identity_of_log(run)

            def undo() -> None:
                if not list_checkpoints(run / "checkpoints") and _identity_of_log(run) in (None, log):
                    _remove_each(_paths_before_training(run) - paths)

            with _undo_on_error(undo):
                yield


@contextlib.contextmanager
def reopened(run: Path, config: Config) -> Iterator[None]:
    """Continue a run with the settings ``config``, and keep other processes from training in it while the body runs.

    If the body fails before it has written another checkpoint, the old configuration is restored. Without a checkpoint
    training begins again, and what an earlier process logged is removed.

    Raises:
        ConfigError: Another process trains there.
    """
    with locked(run):
        before, saved = list_checkpoints(run / "checkpoints"), (run / "config.yaml").read_text(encoding="utf-8")

        def put_back() -> None:
            if list_checkpoints(run / "checkpoints") == before:  # these settings have not been used
                write_text(run / "config.yaml", saved)

        _remove_leftovers(run)
        write_text(run / "config.yaml", config.to_yaml())
        if not before:
            forget_training(run)
        with _undo_on_error(put_back):
            yield


@contextlib.contextmanager
def _undo_on_error(undo: Callable[[], None]) -> Iterator[None]:
    """Call ``undo`` if the body fails; errors of ``undo`` itself are ignored."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError, DragomanError):
            undo()
        raise


def _paths_before_training(run: Path) -> set[Path]:
    """Return the files and folders of a run that are written before it trains; those inside its folders as well."""
    paths = {run / name for name in ("config.yaml", PARENT, PARENT_WORDS, LAUNCH, "store", GIVEN)}
    inside = (path for folder in (run / "store", run / GIVEN) if folder.is_dir() for path in folder.iterdir())
    return {path for path in (*paths, *inside) if path.exists()}


def _identity_of_log(run: Path) -> tuple[int, ...] | None:
    """Return numbers that change when a log is written to or replaced; None without a log."""
    try:
        status = (run / "log.jsonl").stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _remove_each(paths: Iterable[Path]) -> None:
    """Remove files and folders; some of the files may be in one of the folders."""
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders from the innermost outwards, up to the first that is not empty."""
    for folder in folders:
        folder.rmdir()


def refuse_a_run(run: Path) -> None:
    """Check that the folder holds no run or files of others to replace, and that no other process is making one there.

    Raises:
        ConfigError: It does, or one is.
    """
    refuse_if_locked(run)
    _refuse_existing_run(run)
    _refuse_files_of_others(run)


def _refuse_existing_run(run: Path) -> None:
    if list_checkpoints(run / "checkpoints"):
        raise ConfigError(f"{run} already holds a run: go on with --resume, or choose another --out")
    if (run / "bundle").exists():
        raise ConfigError(f"{run} holds a bundle without a checkpoint: delete it, or choose another --out")


def _refuse_files_of_others(run: Path) -> None:
    """Check that a new training replaces no file but those that an earlier attempt has left.

    Raises:
        ConfigError: It would.
    """
    # An attempt writes its report on the prepared text first, though it is empty then. An older version did so last,
    # and has left its lock if it was killed before.
    if (run / "config.yaml").exists() or any(_begins_with(run / name, mark) for name, mark in MARKS.items()):
        return
    names = ["samples.txt", PARENT, PARENT_WORDS, *(f"store/{name}" for name in (*SUBWORDS, LEXICON))]
    names += [name for name in MARKS if name != LOCK] + [LAUNCH] * (launch_name() is not None)
    if strange := next((run / name for name in names if (run / name).exists()), None):
        raise ConfigError(
            f"{strange}: training would replace this file, which is not known to be of a training; delete it or "
            "move it away, or choose another --out"
        )


MARKS = {
    f"store/{PREPARED}": re.compile(rb'\{\n  "settings": '),
    "log.jsonl": re.compile(rb'\{"event": "[a-z_]+", "step": [0-9]'),  # other programs begin with an event too
    LOCK: re.compile(re.escape(LOCK_PREFIX)),  # an empty one may be anybody's
}
"""Files of a run that are known by their first bytes."""


def _begins_with(path: Path, mark: re.Pattern[bytes]) -> bool:
    """True if the first bytes of a file match."""
    with contextlib.suppress(OSError):
        if path.is_file():  # a pipe would block
            with path.open("rb") as file:
                return mark.match(file.read(100)) is not None
    return False


def has_only_begun(run: Path) -> bool:
    """True if a run was begun in a folder, and its process died before the first checkpoint."""
    begun = any((run / name).exists() for name in ("config.yaml", "checkpoints"))
    return begun and not list_checkpoints(run / "checkpoints")


def _remove_leftovers(run: Path) -> None:
    """Remove the temporary files of killed processes from the folder of a run, which is locked."""
    for folder in (run, run / "store", run / "checkpoints"):
        remove_leftovers(folder)


def ready_to_resume(run: Path, overrides: Sequence[str], accept_changed_text: bool, ticker: Ticker) -> PreparedRun:
    """Prepare to resume a run with its own configuration, subwords and stores; only some settings may change.

    Raises:
        BundleError: There is nothing to resume, or it is damaged.
        ConfigError: A setting would make it a different run, or cannot be used on this machine.
        DataError: The text has changed.
    """
    begins = not list_checkpoints(run / "checkpoints")
    if begins and not (run / "config.yaml").is_file():
        raise BundleError(f"{run}: nothing to resume, no such run; leave out --resume to start again")
    if begins and (run / PARENT).is_file():
        raise BundleError(
            f"{run}: nothing to resume, no checkpoint yet; leave out --resume and name the run to start from again"
        )
    saved = Config.from_yaml(run / "config.yaml")
    config = Config.from_yaml(run / "config.yaml", overrides)
    if config.data.tokenizer.vocab_size == requested_vocab_size(run):  # the text may have yielded fewer subwords
        config = with_vocab_size(config, saved.data.tokenizer.vocab_size)
    try:
        device = resolve_device(config.train.device)
    except ConfigError as error:  # this machine lacks the device of the run
        raise ConfigError(f"{error}; with train.device=cpu the run is not bit for bit the same") from None
    moved = device.type != saved.train.device
    if not moved and config.train.precision == "auto":  # keep what auto was resolved to when the run began
        config = config.model_copy(
            update={"train": config.train.model_copy(update={"precision": saved.train.precision})}
        )
    _refuse_another_run(saved, config, moved)
    settings = {"device": device.type, "precision": config.train.precision}
    if moved:  # the saved precision may be emulated on this device
        chosen = any(override.partition("=")[0].strip() == "train.precision" for override in overrides)
        settings["precision"] = resolve_precision(config.train.precision if chosen else "auto", device)
        ticker.say(
            f"train.device was {saved.train.device} and is {device.type}, computing in {settings['precision']}: from "
            "here on not bit for bit the same run"
        )
    config = config.model_copy(update={"train": config.train.model_copy(update=settings)})
    check_trainable(config)  # settings of decode may have changed
    if change := _change_of_cosine(saved, config, run):
        ticker.say(change)
    before, now = saved.train, config.train
    is_longer = now.max_minutes and before.max_minutes and now.max_minutes > before.max_minutes
    if is_longer and now.max_steps == before.max_steps:
        in_proportion = now.max_steps * (now.max_minutes or 0) / (before.max_minutes or 1)
        fit = max(in_proportion, _steps_in(now.max_minutes or 0, run))
        ticker.say(
            f"train.max_minutes is {now.max_minutes:g} now, but train.max_steps still {now.max_steps:,}: if that ends "
            f"it before its time, resume with --set train.max_steps={fit:.0f}"
        )
    tokenizers = check_prepared(run, accept_changed_text, ticker)
    if begins:
        ticker.say(f"{run} has no checkpoint yet: beginning with the text that was prepared")
    return PreparedRun(config, tokenizers, resume=not begins)


def _change_of_cosine(saved: Config, config: Config, run: Path) -> str:
    """Return a sentence on what changed limits do to the learning rate of a cosine at the next step; "" for nothing."""
    before, now = saved.train, config.train
    limits = [name for name in ("max_steps", "max_minutes") if getattr(before, name) != getattr(now, name)]
    if now.schedule != "cosine" or not limits:
        return ""
    step, seconds = _place_of_newest(run)
    old, new = (learning_rate(step + 1, train, config.model.d_model, seconds) for train in (before, now))
    is_other = abs(new - old) > NOTICEABLE * max(new, old)
    if not is_other and "max_steps" not in limits:  # the clock may never be ahead of the steps
        return ""
    names, have, them = " and ".join(f"train.{name}" for name in limits), "have", "them"
    if len(limits) == 1:
        have, them = "has", "it"
    rates = f": at step {step + 1:,} the learning rate is {new:.2g} instead of {old:.2g}" if is_other else ""
    return f"{names} {have} changed, and with {them} the rest of the cosine schedule{rates}"


def _place_of_newest(run: Path) -> tuple[int, float]:
    """Return the step of the newest checkpoint, and the seconds trained by then; 0 where they cannot be read."""
    paths = list_checkpoints(run / "checkpoints")
    if not paths:
        return 0, 0.0
    try:  # loading the checkpoint says what is wrong with it
        return step_of(paths[-1]), float(json.loads((paths[-1] / "state.json").read_text(encoding="utf-8"))["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return step_of(paths[-1]), 0.0


def _steps_in(minutes: float, run: Path) -> int:
    """Return the steps that a run makes in so many minutes at its speed so far; 0 if its log does not tell."""
    with contextlib.suppress(ConfigError):
        timed = [event for event in read_log(run / "log.jsonl")[0] if event.get("seconds")]
        if timed:
            return round(minutes * 60 * timed[-1]["step"] / timed[-1]["seconds"])
    return 0


def _refuse_another_run(saved: Config, config: Config, moved: bool) -> None:
    """Check that only settings have changed that may change when a run is resumed.

    Args:
        moved: True if the device has changed; then the precision may change as well.

    Raises:
        ConfigError: Another setting has changed.
    """
    before, now = _settings(saved.model_dump(mode="json")), _settings(config.model_dump(mode="json"))
    may_change = {f"train.{name}" for name in (*RESUMABLE, *(["precision"] if moved else []))}
    for name in [*before, *now]:
        is_other = before.get(name) != now.get(name)
        if is_other and name not in may_change and not name.startswith("decode."):
            raise ConfigError(f"{name} = {now.get(name)!r}, but the run has {before.get(name)!r}: it {ANOTHER_RUN}")


def _settings(section: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return each setting by its dotted name."""
    settings: dict[str, Any] = {}
    for key, value in section.items():
        settings |= _settings(value, f"{path}{key}.") if isinstance(value, Mapping) else {f"{path}{key}": value}
    return settings


PROCESS = uuid.uuid4().hex
"""Name of this process. A training that it has begun itself is not restarted by it."""


def mark_launch(run: Path) -> None:
    """Write down which call of torchrun trains in the folder, if any, and in which process."""
    if launch := launch_name():
        write_text(run / LAUNCH, f"{PROCESS}\n{launch}")


def is_restart(run: Path, ticker: Ticker) -> bool:
    """Return True if this call of torchrun began the run and was restarted, and there is a checkpoint to resume from.

    Without a checkpoint the folder is cleared, to begin again.
    """
    launch, mark = launch_name(), run / LAUNCH
    if launch is None or not mark.is_file():
        return False
    process, _, begun_by = mark.read_text(encoding="utf-8", errors="replace").partition("\n")
    if begun_by != launch or process == PROCESS:
        return False
    if list_checkpoints(run / "checkpoints"):
        ticker.say("restarted by torchrun: resuming from the last checkpoint, as with --resume")
        return True
    ticker.say("restarted by torchrun before the first checkpoint: starting over")
    begin_again(run)
    return False


def begin_again(run: Path) -> None:
    """Remove the files of a run whose process died before its first checkpoint; the prepared text stays.

    Raises:
        ConfigError: Another process trains there.
    """
    with locked(run):
        (run / "config.yaml").unlink(missing_ok=True)
        forget_training(run)


def forget_training(run: Path) -> None:
    """Remove what a training without a checkpoint has logged and half saved."""
    for name in ("log.jsonl", "samples.txt"):
        (run / name).unlink(missing_ok=True)
    for name in ("tensorboard", "checkpoints"):  # the last is the one by which a run is known to have begun
        shutil.rmtree(run / name, ignore_errors=True)


def read_prepared(run: Path) -> PreparedRun:
    """Read on other ranks what rank 0 has prepared; it broadcasts whether the run is resumed, and its weights."""
    try:
        config = Config.from_yaml(run / "config.yaml")
    except ConfigError as error:
        raise ConfigError(f"{error}; the run folder must be on a file system that all machines share") from None
    return PreparedRun(config, load_tokenizers(run / "store"))


def check_same_folder(run: Path, tokenizers: tuple[Tokenizer, Tokenizer], world: World) -> None:
    """Check that all ranks train with the same settings, subwords and text.

    Raises:
        ConfigError: A rank has another folder under the name of the run.
    """
    if world.size == 1:
        return
    digest = hashlib.sha256("".join(tokenizer.fingerprint for tokenizer in tokenizers).encode())
    for name in ("config.yaml", f"store/{LEXICON}", *(f"store/{side}/{ABOUT}" for side in ("train", "valid"))):
        path = run / name
        digest.update(path.read_bytes() if path.is_file() else b"")
    if differ := ranks_that_differ(world, "run folder", digest.hexdigest()):
        raise ConfigError(
            f"the run folder of rank {differ[0]} is another one, with other settings, subwords or text than that of "
            f"rank 0: {run} must be on a file system that all machines share"
        )
