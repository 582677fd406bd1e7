"""Synthetic training data, made by translating text of one language: the function behind ``dragoman augment``.

    dragoman.augment("made", forward="runs/there", src="news.en", back="runs/back", tgt="news.de")

Forward translation (self-training) takes source text and makes its targets; back-translation (Sennrich et al. 2016,
https://aclanthology.org/P16-1009) takes target text and makes its sources. OUT holds

    forward.en  forward.de      source text and its translations, line by line
    back.en  back.de            back-translations and the target text
    config.yaml                 the settings of the run that translates, with this text added to its own
    augmentation.json           how many lines were kept and left out, and why; the filters; the sums of the text files
    translations/               the request, the translated lines, all their translations

Each step writes its files completely or not at all: after a kill the same call resumes. A call with other filters
filters again and translates nothing. Where augmentation.json stands, the text files are those that it describes.
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
from dragoman.data.corpus import read_lines
from dragoman.data.store import fingerprint
from dragoman.distillation.direction import REPORT, WORK, Direction
from dragoman.distillation.mixing import configuration
from dragoman.distillation.options import AugmentOptions
from dragoman.distillation.request import REQUEST, check_request
from dragoman.distillation.selection import Counts, choose_pairs, take_lines
from dragoman.distillation.text import check_languages, check_text, refuse_two_sides, translate_text
from dragoman.errors import ConfigError, DataError
from dragoman.files import (
    below,
    explained,
    final_name,
    lies_in,
    pinned,
    read_report,
    remove_leftovers,
    write_report,
    write_text,
)
from dragoman.languages.codes import variety
from dragoman.languages.mixups import name_of, named_otherwise
from dragoman.locks import LOCK, locked
from dragoman.options import SamplingOptions, takes
from dragoman.progress import Ticker
from dragoman.ready import pinned_run
from dragoman.toolkits.options import EngineOptions
from dragoman.translation.language_pairs import Langs
from dragoman.translation.options import TranslateOptions
from dragoman.translation.plan import Plan
from dragoman.translation.translator import Translator

CONFIG = "config.yaml"

Paths = Sequence[Path | str]
Runs = Path | str | Paths


class Augmented(NamedTuple):
    """Result of ``augment``: a folder with synthetic data and a configuration, and counts."""

    folder: Path
    entries: tuple[dict[str, Any], ...]  # of the synthetic data, for ``data.train``
    counts: dict[str, Counts]  # forward, back

    @property
    def config(self) -> Path:
        """Path of a configuration for ``dragoman train``."""
        return self.folder / CONFIG


@takes(AugmentOptions)
def augment(
    out: Path | str, *, forward: Runs = (), src: Path | str | Sequence[Path | str] = (), back: Runs = (),
    tgt: Path | str | Sequence[Path | str] = (), options: AugmentOptions | None = None, **changes: Any,
) -> Augmented:  # fmt: skip
    """Make synthetic training data by translating text of one language; after a kill the same call resumes.

    Args:
        out: The folder to write.
        forward: A run that translates the text of ``src``; several are an ensemble.
        src: Text of the source language, one sentence a line (also ``.gz``, ``.zst``); one file or several.
        back: A run of the other direction, which translates the text of ``tgt``; several are an ensemble.
        tgt: Text of the target language.
        options: All options; ``changes`` are options by name. ``AugmentOptions`` explains each.

    Returns:
        ``folder``; ``config``, the path of a configuration for ``train``; ``entries`` of the synthetic data for
        ``data.train``; and ``counts`` of lines and translations for each direction, with those left out by reason.

    Raises:
        ConfigError, DataError, BundleError: An argument or a file cannot be used; nothing is half-written.
    """
    options = AugmentOptions.of(options, changes)
    folder, ticker = pinned(out), Ticker(options.quiet)
    _refuse_another_folder(folder)
    held_out = tuple(map(pinned, options.held_out))
    directions = _directions(folder, (_each(forward), _each(src)), (_each(back), _each(tgt)), options)
    _check_files(folder, directions, held_out, options)
    with ticker.task("checking the text of the run"):
        mixed = configuration(directions, folder / CONFIG, options)  # refused before anything is translated
    request = _request(directions, held_out, options)
    with explained(folder):
        (folder / WORK).mkdir(parents=True, exist_ok=True)
    with _removed_if_refused(folder), locked(folder / WORK):
        if not (folder / WORK / REQUEST).is_file():
            for direction in directions:
                take_lines(direction, held_out, options.any_language, ticker)
        check_request(folder / WORK / REQUEST, request, f"{folder}: its text")
        for own_folder in (folder, folder / WORK):
            remove_leftovers(own_folder)
        text_files = [side for direction in directions for side in direction.sides]
        chosen = read_report(folder / REPORT, text_files) or {}
        if chosen.get("filters") != _filters(options):
            chosen = {}
        counts = {}
        for direction in directions:
            counts[direction.name] = _made(direction, options, chosen, ticker)
            for line in str(counts[direction.name]).split("\n"):
                ticker.say(f"{direction.name}: {line}")
        write_config(folder, mixed.text, ticker)
        for remark in mixed.remarks:
            ticker.say(f"{folder / CONFIG}: {remark}")
        by_direction = {name: counted._asdict() for name, counted in counts.items()}
        write_report(folder / REPORT, {"filters": _filters(options), **by_direction}, text_files)
    return Augmented(Path(out), mixed.entries, counts)


def _each(paths: Runs) -> tuple[Path | str, ...]:
    """Return one path or several, made absolute: a model is loaded before the next one is opened."""
    return tuple(map(pinned_run, [paths] if isinstance(paths, Path | str) else paths))


def _refuse_another_folder(folder: Path) -> None:
    """Refuse a folder with files that no augmentation wrote."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: is a file; name a folder with --out")
    if (folder / WORK / REQUEST).is_file():
        return
    for path in below(folder) if folder.exists() else ():
        begun = path.parent == folder / WORK and final_name(path).startswith((LOCK, REQUEST, "forward.", "back."))
        if not begun:
            raise ConfigError(f"{folder}: holds files that no augmentation wrote; choose a new or an empty --out")


@contextmanager
def _removed_if_refused(folder: Path) -> Iterator[None]:
    """Remove the folder again if there turns out to be no text to translate."""
    try:
        yield
    except DataError:
        if not (folder / WORK / REQUEST).is_file():
            with suppress(OSError):  # files of others stay
                shutil.rmtree(folder / WORK)
                folder.rmdir()
        raise


def _directions(
    folder: Path, forward: tuple[Paths, Paths], back: tuple[Paths, Paths], options: AugmentOptions
) -> list[Direction]:  # fmt: skip
    """Return the requested directions, with their models loaded and their languages checked."""
    named = {"forward": (*forward, "--src"), "back": (*back, "--tgt")}
    for name, (runs, texts, flag) in named.items():
        if runs and not texts:
            raise ConfigError(f"--{name} {runs[0]} has nothing to translate: give the text with {flag}")
        if texts and not runs:
            other = "; --forward is for text of the other side" if name == "back" else ""
            raise ConfigError(f"{flag} {texts[0]} needs a model that translates it: give --{name} RUN{other}")
    if not any(runs for runs, _, _ in named.values()):
        raise ConfigError("nothing to translate: give --forward RUN with --src FILE, or --back RUN with --tgt FILE")
    for flag, is_given, name in (
        ("--tag", options.tag != AugmentOptions().tag, "back"),
        ("--forward-tag", options.forward_tag != AugmentOptions().forward_tag, "forward"),
    ):
        if is_given and not named[name][0]:
            raise ConfigError(f"{flag} is for the text of --{name}: leave it out, or give --{name} RUN")
    directions: list[Direction] = []
    for name, (runs, texts, _) in named.items():
        if runs:
            translator = Translator.load(runs)
            if translator.is_parser:
                raise ConfigError(f"{runs[0]}: a parser translates nothing; give a translation run")
            plan = _plan(translator, name, options, directions[0].langs if directions else None)
            check_languages(translator, runs, plan)
            directions.append(Direction(
                name=name, translator=translator, runs=tuple(runs), plan=plan, texts=tuple(map(pinned, texts)),
                folder=folder,
            ))  # fmt: skip
    pair = options.from_lang, options.to
    for direction in directions:
        if not _agree(direction.langs, pair):
            which = " ".join(f"{flag} {lang}" for flag, lang in zip(("--from", "--to"), pair, strict=True) if lang)
            where = f"--{direction.name} {direction.runs[0]} translates {direction.translates}"
            raise ConfigError(f"{which} is the direction of training, but {where}: leave it out or give another model")
    if len(directions) == 2 and not _agree(directions[0].langs, directions[1].langs):
        forwards, backwards = (f"{direction.runs[0]} translates {direction.translates}" for direction in directions)
        raise ConfigError(
            f"--forward {forwards} and --back {backwards}: --back takes a model of the opposite direction"
        )
    return directions


def _agree(one: Langs, other: Langs) -> bool:
    """True if two pairs have the same languages; an unknown language matches any."""
    return all(not a or not b or variety(a) == variety(b) for a, b in zip(one, other, strict=True))


def _plan(translator: Translator, name: str, options: AugmentOptions, known: Langs | None) -> Plan:
    """Plan the translation of one direction; impossible options are refused here.

    Args:
        known: Languages of the training data, if the other direction determines them.
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


def _check_files(
    folder: Path, directions: Sequence[Direction], held_out: Sequence[Path], options: AugmentOptions
) -> None:
    """Check that each file can be read, is in its language, and lies outside the output folder."""
    for direction in directions:
        option, lang, run = f"--{direction.name}", direction.plan.src_lang, f"{direction.runs[0]}"
        turned = "--back with --tgt" if direction.name == "forward" else "--forward with --src"
        for path in direction.texts:
            named = named_otherwise(path, lang)
            if named and variety(named) == variety(direction.plan.tgt_lang):
                raise ConfigError(
                    f"{path}: {name_of(named)} by its name, but {option} {run} translates {direction.translates}: give "
                    f"text in {lang}, or give this model to {turned}, or one of the other direction here"
                )
            check_text(path, None if options.any_language else lang, run, "add --any-language if it is meant")
    for path in held_out:
        refuse_a_pipe(path)
        refuse_two_sides(path)
        # Lines in another encoding would match none of the text's, so test text would be trained on.
        for _ in read_lines(path):
            pass
    for path in (*(path for direction in directions for path in direction.texts), *held_out):
        if lies_in(path, folder.resolve()):
            raise ConfigError(f"{path}: lies in {folder}, which is written; choose another --out")


def _request(directions: Sequence[Direction], held_out: Sequence[Path], options: AugmentOptions) -> dict[str, Any]:
    """Return everything that the translations depend on."""
    same = (
        "length_penalty", "length_penalty_form", "patience", "n_best", "sample", "temperature", "top_k", "top_p",
        "seed", "precision", "any_language",
    )  # fmt: skip
    request: dict[str, Any] = {
        "dragoman augment": __version__, "held_out": [fingerprint(path) for path in held_out],
        **{name: getattr(options, name) for name in same},
    }  # fmt: skip
    for direction in directions:
        request[direction.name] = {
            "models": [bundle.facts.sha256 for bundle in direction.translator.bundles],
            "texts": [fingerprint(path) for path in direction.texts],
            "languages": list(direction.langs),
            "beam_size": direction.plan.search.decode.beam_size,
            "engine": direction.plan.engine.name,
        }
    return json.loads(json.dumps(request))


def write_config(folder: Path, text: str, ticker: Ticker) -> None:
    """Write the configuration, but not over one that somebody has edited."""
    path, written = folder / CONFIG, folder / WORK / CONFIG
    if path.is_file() and not (written.is_file() and path.read_bytes() == written.read_bytes()):
        ticker.say(f"{path} was edited and is left as it is")
        return
    write_text(written, text)
    write_text(path, text)


def _filters(options: AugmentOptions) -> dict[str, Any]:
    """Return the options that may change without translating again."""
    return {name: getattr(options, name) for name in ("drop_worst", "max_ratio")}


def _made(direction: Direction, options: AugmentOptions, chosen: dict[str, Any], ticker: Ticker) -> Counts:
    """Make the synthetic data of one direction, unless an earlier call made it; return the counts.

    Args:
        chosen: The report of an earlier call with the same filters; empty if there is none.
    """
    of_lines = json.loads(direction.work(".json").read_text(encoding="utf-8"))
    n_lines = of_lines["translated"]

    def progress(done: int, _: int) -> None:
        ticker(done, n_lines, f"lines translated {direction.name}")

    lines, translations = direction.work(".lines"), direction.work(".jsonl")
    translate_text(direction.translator, direction.plan, (lines, translations), progress, ticker)
    if direction.name in chosen:
        return Counts(of_lines, chosen[direction.name]["translations"])
    return Counts(of_lines, choose_pairs(direction, n_lines, options, ticker))
