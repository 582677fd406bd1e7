"""What ``dragoman augment`` does, as a function: more training text, made by models from text that one side has alone.

    dragoman.augment("made", forward="runs/there", src="news.en", back="runs/back", tgt="news.de")

Forward translation (self-training) takes source text and makes its targets; back-translation (Sennrich et al. 2016,
https://aclanthology.org/P16-1009) takes target text and makes its sources. OUT holds

    forward.en  forward.de      source text and its translations, line by line
    back.en  back.de            back-translations and the target text
    config.yaml                 the settings of the run that translates, with this text beside its own
    augmentation.json           how many lines were kept and left out, and why
    translations/               what was asked for, the lines that are translated, all their translations

Each step leaves what it made, whole or not at all: after a kill the same call goes on. A call with other filters
chooses again and translates nothing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from dragoman import __version__
from dragoman.data.compression import refuse_a_pipe
from dragoman.data.corpus import lines_of
from dragoman.data.store import fingerprint
from dragoman.distillation.asked import ASKED, same_as_before
from dragoman.distillation.direction import WORK, Direction
from dragoman.distillation.mixing import configuration
from dragoman.distillation.options import AugmentOptions
from dragoman.distillation.selection import Counts, choose_pairs, take_lines
from dragoman.distillation.text import check_languages, check_text, translate_text
from dragoman.errors import ConfigError, DataError
from dragoman.files import LOCK, explained, locked, write_text
from dragoman.languages.codes import language_of, primary
from dragoman.options import SamplingOptions, takes
from dragoman.progress import Ticker
from dragoman.toolkits.options import EngineOptions
from dragoman.translation.language_pairs import Langs
from dragoman.translation.options import TranslateOptions
from dragoman.translation.plan import Plan
from dragoman.translation.translator import Translator

REPORT = "augmentation.json"
CONFIG = "config.yaml"

Runs = Path | str | Sequence[Path | str]


class Augmented(NamedTuple):
    """What ``augment`` leaves: a folder with text and a configuration, and what was counted."""

    folder: Path
    entries: tuple[dict[str, Any], ...]  # of the made text, for ``data.train``
    counts: dict[str, Counts]  # forward, back

    @property
    def config(self) -> Path:
        """A configuration for ``dragoman train``."""
        return self.folder / CONFIG


@takes(AugmentOptions)
def augment(
    out: Path | str, *, forward: Runs = (), src: Path | str | Sequence[Path | str] = (), back: Runs = (),
    tgt: Path | str | Sequence[Path | str] = (), options: AugmentOptions | None = None, **changes: Any,
) -> Augmented:  # fmt: skip
    """Make more training text by translating text of one language; after a kill the same call goes on.

    Args:
        out: The folder to write.
        forward: A run that translates the text of ``src``; several are an ensemble.
        src: Text of the source language, one sentence a line (also ``.gz``, ``.zst``); one file or several.
        back: A run of the other direction, which translates the text of ``tgt``; several are an ensemble.
        tgt: Text of the target language.
        options: How; ``changes`` are options by name. ``AugmentOptions`` says what each one means.

    Returns:
        ``folder``; ``config``, the path of a configuration for ``train``; ``entries`` of the made text for
        ``data.train``; and ``counts`` of lines and translations for each direction, with what was left out and why.

    Raises:
        ConfigError, DataError, BundleError: What is wrong and what to do; nothing is half-written.
    """
    options = AugmentOptions.of(options, changes)
    folder, ticker = Path(out), Ticker(options.quiet)
    _refuse_another_folder(folder)
    directions = _directions(folder, (_all(forward), _all(src)), (_all(back), _all(tgt)), options)
    held_out = tuple(Path(path) for path in options.held_out)
    _check_files(folder, directions, held_out)
    mixed = configuration(directions, folder / CONFIG, options)  # refused before anything is translated
    asked = _asked(directions, held_out, options)
    with explained(folder):
        (folder / WORK).mkdir(parents=True, exist_ok=True)
    with _removed_if_refused(folder), locked(folder / WORK):
        if not (folder / WORK / ASKED).is_file():
            for direction in directions:
                take_lines(direction, held_out, options.any_language, ticker)
        same_as_before(folder / WORK / ASKED, asked, f"{folder}: its text")
        chosen = _chosen(folder, options)
        counts = {}
        for direction in directions:
            counts[direction.name] = _made(direction, options, chosen, ticker)
            for line in str(counts[direction.name]).split("\n"):
                ticker.say(f"{direction.name}: {line}")
        write_config(folder, mixed.text, ticker)
        for lack in mixed.missing:
            ticker.say(f"{folder / CONFIG}: {lack}")
        write_text(folder / REPORT, _report(counts, options))
    return Augmented(folder, mixed.made, counts)


def _all(given: Runs) -> tuple[str, ...]:
    return (str(given),) if isinstance(given, Path | str) else tuple(map(str, given))


def _refuse_another_folder(folder: Path) -> None:
    """Refuse a folder with something that no augmentation has written."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: is a file; name a folder with --out")
    if (folder / WORK / ASKED).is_file():
        return
    for path in folder.rglob("*"):
        begun = path.parent == folder / WORK and path.name.lstrip(".").startswith((LOCK, "forward.", "back."))
        if path.is_file() and not begun:
            raise ConfigError(f"{folder}: holds files that no augmentation wrote; choose a new or an empty --out")


@contextmanager
def _removed_if_refused(folder: Path) -> Iterator[None]:
    """Take away what was begun, if the text that is to be translated turns out to be none."""
    try:
        yield
    except DataError:
        if not (folder / WORK / ASKED).is_file():
            with suppress(OSError):  # what else is there stays
                shutil.rmtree(folder / WORK)
                folder.rmdir()
        raise


def _directions(
    folder: Path, forward: tuple[Sequence[str], Sequence[str]], back: tuple[Sequence[str], Sequence[str]],
    options: AugmentOptions,
) -> list[Direction]:  # fmt: skip
    """The directions that are asked for, each with its models loaded and its languages seen to fit."""
    named = {"forward": (*forward, "--src"), "back": (*back, "--tgt")}
    for name, (runs, texts, flag) in named.items():
        if runs and not texts:
            raise ConfigError(f"--{name} {runs[0]} has nothing to translate: give the text with {flag}")
        if texts and not runs:
            other = "; --forward is for text of the other side" if name == "back" else ""
            raise ConfigError(f"{flag} {texts[0]} needs a model that translates it: give --{name} RUN{other}")
    if not any(runs for runs, _, _ in named.values()):
        raise ConfigError("nothing to translate: give --forward RUN with --src FILE, or --back RUN with --tgt FILE")
    directions: list[Direction] = []
    for name, (runs, texts, _) in named.items():
        if runs:
            translator = Translator.load(runs)
            if translator.is_parser:
                raise ConfigError(f"{runs[0]}: a parser translates nothing; give a translation run")
            plan = _plan(translator, name, options, directions[0].langs if directions else None)
            check_languages(translator, runs, plan)
            directions.append(Direction(
                name=name, translator=translator, runs=tuple(runs), plan=plan, texts=tuple(map(Path, texts)),
                folder=folder,
            ))  # fmt: skip
    asked = options.from_lang, options.to
    for direction in directions:
        if not _agree(direction.langs, asked):
            which = " ".join(f"{flag} {lang}" for flag, lang in zip(("--from", "--to"), asked, strict=True) if lang)
            where = f"--{direction.name} {direction.runs[0]} translates {direction.translates}"
            raise ConfigError(f"{which} says what is trained on, and {where}: leave it out, or give another model")
    if len(directions) == 2 and not _agree(directions[0].langs, directions[1].langs):
        (one, one_runs), (other, other_runs) = ((direction.translates, direction.runs[0]) for direction in directions)
        raise ConfigError(
            f"--forward {one_runs} translates {one} and --back {other_runs} {other}: --back takes a model of the "
            "opposite direction"
        )
    return directions


def _agree(one: Langs, other: Langs) -> bool:
    """Whether two pairs are the same, as far as they are known."""
    return all(not a or not b or primary(a) == primary(b) for a, b in zip(one, other, strict=True))


def _plan(translator: Translator, name: str, options: AugmentOptions, known: Langs | None) -> Plan:
    """How a model translates; what is impossible is refused here.

    Args:
        known: The languages of the training text, if the other direction has told them.
    """
    src, tgt = options.from_lang or (known and known[0]), options.to or (known and known[1])
    to, from_lang = (tgt, src) if name == "forward" else (src, tgt)
    several = len(translator.src_tokenizer.targets) > 1
    how = options.of_group(EngineOptions) | options.of_group(SamplingOptions)
    if options.beam_size is None and not options.sample and options.n_best > translator.config.decode.beam_size:
        how["beam_size"] = options.n_best
    return translator.plan(
        TranslateOptions(
            protect=False, to=to if several else None,
            from_lang=from_lang if several or len(translator.languages.sources) > 1 else None, **how,
        )
    )  # fmt: skip


def _check_files(folder: Path, directions: Sequence[Direction], held_out: Sequence[Path]) -> None:
    """See that each file can be read, is in its language, and does not lie where the text will be written."""
    for direction in directions:
        option, lang, run = f"--{direction.name}", direction.plan.src_lang, direction.runs[0]
        turned = "--back with --tgt" if direction.name == "forward" else "--forward with --src"
        for path in direction.texts:
            said = language_of(path)
            if said and primary(said) == primary(direction.plan.tgt_lang) != primary(lang):
                raise ConfigError(
                    f"{path}: {said} by its name, but {option} {run} translates {direction.translates}: give text in "
                    f"{lang}, or give this model to {turned}, or one of the other direction here"
                )
            check_text(path, lang, run)
    for path in held_out:
        refuse_a_pipe(path)
        next(lines_of(path), None)  # can be read
    for path in (*(path for direction in directions for path in direction.texts), *held_out):
        if path.resolve().is_relative_to(folder.resolve()):
            raise ConfigError(f"{path}: lies in {folder}, which is written; choose another --out")


def _asked(directions: Sequence[Direction], held_out: Sequence[Path], options: AugmentOptions) -> dict[str, Any]:
    """All that the translations depend on."""
    same = (
        "length_penalty", "length_penalty_form", "patience", "n_best", "sample", "temperature", "top_k", "top_p",
        "seed", "precision", "any_language",
    )  # fmt: skip
    asked: dict[str, Any] = {
        "dragoman augment": __version__, "held_out": [fingerprint(path) for path in held_out],
        **{name: getattr(options, name) for name in same},
    }  # fmt: skip
    for direction in directions:
        asked[direction.name] = {
            "models": [bundle.facts.sha256 for bundle in direction.translator.bundles],
            "texts": [fingerprint(path) for path in direction.texts],
            "languages": list(direction.langs),
            "beam_size": direction.plan.search.decode.beam_size,
            "engine": direction.plan.engine.name,
        }
    return json.loads(json.dumps(asked))


def write_config(folder: Path, text: str, ticker: Ticker) -> None:
    """Write the configuration, but not over one that somebody has edited."""
    path, written = folder / CONFIG, folder / WORK / CONFIG
    if path.is_file() and not (written.is_file() and path.read_bytes() == written.read_bytes()):
        ticker.say(f"{path} was edited and is left as it is")
        return
    write_text(written, text)
    write_text(path, text)


def _filters(options: AugmentOptions) -> dict[str, Any]:
    """What may be asked for otherwise when all is translated."""
    return {name: getattr(options, name) for name in ("drop_worst", "max_ratio")}


def _report(counts: dict[str, Counts], options: AugmentOptions) -> str:
    found = {name: one._asdict() for name, one in counts.items()}
    return json.dumps({"filters": _filters(options), **found}, indent=2) + "\n"


def _chosen(folder: Path, options: AugmentOptions) -> dict[str, Any]:
    """What an earlier call with the same filters reported; nothing if there was none."""
    try:
        found = json.loads((folder / REPORT).read_text(encoding="utf-8"))
        return dict(found) if found["filters"] == _filters(options) else {}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def _made(direction: Direction, options: AugmentOptions, chosen: dict[str, Any], ticker: Ticker) -> Counts:
    """The text of one direction: made, or as an earlier call made it."""
    of_lines = json.loads(direction.work(".json").read_text(encoding="utf-8"))
    lines, n_lines, translations = direction.work(".lines"), of_lines["translated"], direction.work(".jsonl")
    translate_text(
        direction.translator, direction.plan, lines, translations, ticker, f"lines translated {direction.name}",
        total=n_lines,
    )  # fmt: skip
    if direction.name in chosen and all(side.is_file() for side in direction.sides):
        return Counts(of_lines, chosen[direction.name]["translations"])
    return Counts(of_lines, choose_pairs(direction, lines, n_lines, translations, options, ticker))
