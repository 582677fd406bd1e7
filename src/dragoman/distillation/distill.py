"""What ``dragoman distill`` does, as a function.

    dragoman.distill("runs/teacher", src="train.en", ref="train.de", out="runs/student")

The student's run is an ordinary one, and beside what any run has there are

    distillation/           the teacher's translations, the pairs to learn from, and what was asked for
    exports/                the student in int8 for each engine of another toolkit that is installed
    distillation.json       the certificate: quality, speed and size beside the teacher's

Each step leaves what it made in the run, whole or not at all: after a kill the same call goes on.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from dragoman import __version__
from dragoman.bundle import Fast, amend_bundle, find_bundle, load_bundle
from dragoman.config import Config, PairOfFiles, each, with_overrides
from dragoman.data import shortlist as shortlists
from dragoman.data.compression import refuse_a_pipe
from dragoman.data.corpus import count_lines, read_pairs
from dragoman.data.store import Store, fingerprint
from dragoman.distillation.asked import ASKED, same_as_before
from dragoman.distillation.certificate import Certificate, Measuring, certify
from dragoman.distillation.options import DistillOptions
from dragoman.distillation.shrink import check_shrinkable, write_shrunk
from dragoman.distillation.text import Text, check_languages, check_text, choose, hold_out, sides_of, translate_texts
from dragoman.errors import ConfigError, DataError
from dragoman.files import MANIFEST, explained, locked, read_manifest, write_text
from dragoman.languages.codes import primary
from dragoman.options import LanguageOptions, takes
from dragoman.progress import Ticker
from dragoman.toolkits.choice import engine_class, exporting_engines
from dragoman.toolkits.export import export
from dragoman.toolkits.options import EngineOptions
from dragoman.training.checkpoint import list_checkpoints
from dragoman.training.folder import begin_again
from dragoman.training.run import Trained, train
from dragoman.translation.options import TranslateOptions
from dragoman.translation.plan import Plan
from dragoman.translation.translator import Translator

CERTIFICATE = "distillation.json"
FOLDER = "distillation"

DROPOUT = 0.1
"""A student is small for its text, which the teacher has made simpler."""

SHRUNK_RATE = 7e-4
"""The peak rate for a shrunk teacher: half of what training from scratch has, as layers must learn to stand alone."""

OF_THE_RUN = (
    "length_penalty", "length_penalty_form", "patience", "best_of", "precision", "drop_worst", "preset", "shrink",
    "with_references",
)  # fmt: skip
"""Options that cannot change when a distillation is resumed."""


class Distilled(NamedTuple):
    """What ``distill`` leaves: the student's run and its certificate; or the signal that stopped it in training."""

    run: Path
    certificate: Certificate | None
    signal: int | None = None


@takes(DistillOptions)
def distill(
    teachers: Path | str | Sequence[Path | str], *, src: Path | str, out: Path | str,
    options: DistillOptions | None = None, **changes: Any,
) -> Distilled:  # fmt: skip
    """Train a student on what its teachers translate; after a kill the same call goes on.

    Args:
        teachers: A run or a bundle; several are an ensemble, and share their subwords.
        src: Text of the source language, one sentence a line (also ``.gz``, ``.zst``).
        out: The student's run folder.
        options: How; ``changes`` are options by name. ``DistillOptions`` says what each one means.

    Returns:
        ``run``, the student's folder, and its ``certificate``, as of ``certify``; or the ``signal`` that stopped
        training.

    Raises:
        ConfigError, DataError, BundleError: What is wrong and what to do; nothing is half-written.
    """
    options = DistillOptions.of(options, changes)
    names = [str(teachers)] if isinstance(teachers, Path | str) else list(map(str, teachers))
    run, ticker = Path(out), Ticker(options.quiet)
    _refuse_another_run(run)
    teacher = Translator.load(names)
    plan = _plan(teacher, names, options)
    _check_teacher(teacher, names, options, plan)
    _check_settings(teacher.config, options, plan)
    texts = _texts(Path(src), options, teacher, plan)
    valid = _validation(texts, options, teacher, plan)
    asked = _asked(teacher, texts, valid, options, plan)
    folder = run / FOLDER
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        same_as_before(folder / ASKED, asked, f"{run}: its distillation")
        pairs, counts = _pairs(teacher, plan, texts, folder, options, ticker)
        valid = valid or _held_out(texts[0], folder, plan)
        if not _is_trained(run):
            trained = train_student(run, pairs, texts[0], valid, teacher, options, plan)
            if trained.signal is not None:
                return Distilled(run, None, trained.signal)
        add_shortlist(run, ticker)
        return Distilled(run, _certificate(run, teacher, plan, names, valid, counts, ticker))


def _refuse_another_run(run: Path) -> None:
    """Refuse a folder with a run that no distillation has begun."""
    there = [name for name in ("config.yaml", "checkpoints", "bundle", MANIFEST) if (run / name).exists()]
    if there and not (run / FOLDER / ASKED).is_file():
        raise ConfigError(f"{run} holds a run that no distillation began: choose another --out")
    if run.exists() and not run.is_dir():
        raise ConfigError(f"{run}: is a file; name a folder with --out")


def _check_teacher(teacher: Translator, names: Sequence[str], options: DistillOptions, plan: Plan) -> None:
    """Refuse teachers of different languages, a student of others, and a shrunk one of several."""
    several = len(teacher.src_tokenizer.targets) > 1
    if several and options.shrink is not None:
        raise ConfigError(
            f"--shrink keeps the subwords of {names[0]}, whose sources say one of several target languages, and a "
            "student has one: use --preset"
        )
    check_languages(teacher, names, plan)
    ours = plan.src_lang, plan.tgt_lang
    for override in options.overrides:
        name, _, value = override.partition("=")
        for side, lang in zip(("data.src_lang", "data.tgt_lang"), ours, strict=True):
            if name.strip() == side and lang and primary(value.strip()) != primary(lang):
                raise ConfigError(f"--set {override}: the teacher has {lang} there, and a student has its languages")


def _check_settings(teacher: Config, options: DistillOptions, plan: Plan) -> None:
    """Refuse settings that the student's training would refuse, before there is anything to train on."""
    if options.layers is not None:
        check_shrinkable(teacher, *options.layers)
        return  # training looks at them, as in any fine-tuning
    said = [one for one in options.overrides if not one.strip().startswith("train.")]  # which depends on the text
    files = {"data": {"train": {"src": "pairs.src", "tgt": "pairs.tgt"}}}
    Config.from_mapping(with_overrides(files, [*_settings(teacher, options, plan), *said]), "the student's settings")


def _texts(src: Path, options: DistillOptions, teacher: Translator, plan: Plan) -> list[Text]:
    """The texts to translate, each opened, counted, and seen to be in the teacher's language."""
    ref = options.ref
    paths = (src, *map(Path, options.mono))
    for path in paths:
        check_text(path, plan.src_lang, "the teacher")
    found = [Text(src=path, n_lines=count_lines(path)) for path in paths]
    if ref is None:
        return found
    refuse_a_pipe(ref)
    n_refs = count_lines(ref)
    if n_refs != found[0].n_lines:
        raise DataError(f"{ref}: {n_refs:,} lines, but {src} has {found[0].n_lines:,}: line i must translate line i")
    every = None if _valid_files(options, teacher, plan) else max(100, -(-n_refs // 2000))
    return [Text(src=src, ref=Path(ref), held_out=every, n_lines=n_refs), *found[1:]]


def _valid_files(options: DistillOptions, teacher: Translator, plan: Plan) -> PairOfFiles | None:
    """The validation text that was named, or the teacher's own of these languages, if that is still there."""
    if options.valid_src is not None and options.valid_ref is not None:
        return PairOfFiles(src=Path(options.valid_src), tgt=Path(options.valid_ref))
    valid = teacher.config.data.valid
    own = () if valid is None else each(valid)
    if teacher.languages.targets:
        ours = plan.src_lang, plan.tgt_lang
        own = tuple(one for one in own if (one.src_lang or teacher.config.data.src_lang, one.tgt_lang) == ours)
    if len(own) == 1 and isinstance(own[0], PairOfFiles) and own[0].src.is_file() and own[0].tgt.is_file():
        return own[0].model_copy(update={"src_lang": None, "tgt_lang": None})
    return None


def _validation(texts: Sequence[Text], options: DistillOptions, teacher: Translator, plan: Plan) -> PairOfFiles | None:
    """The validation text; None: it is to be held out.

    Raises:
        ConfigError: There is none, and no references to hold out.
        DataError: It cannot be read, or is empty.
    """
    found = _valid_files(options, teacher, plan)
    if found is None and (texts[0].held_out is None or texts[0].n_lines < texts[0].held_out):
        raise ConfigError(
            "no validation text: the teacher's is no longer there; give --valid-src and --valid-ref, or the references "
            "of --src with --ref, of which 1% is held out"
        )
    if found is not None and not any(True for _ in read_pairs(found.src, found.tgt)):
        raise DataError(f"{found.src}: a validation text without a line; give another one with --valid-src")
    return found


def _plan(teacher: Translator, names: Sequence[str], options: DistillOptions) -> Plan:
    """How the teacher translates; what is impossible is refused here."""
    if teacher.is_parser:
        raise ConfigError(f"{names[0]}: a parser cannot be distilled; give a translation run")
    how = options.of_group(EngineOptions) | options.of_group(LanguageOptions)
    if options.beam_size is None and options.best_of > 1:
        how["beam_size"] = max(options.best_of, teacher.config.decode.beam_size)
    return teacher.plan(TranslateOptions(n_best=options.best_of, protect=False, **how))


def _asked(
    teacher: Translator, texts: Sequence[Text], valid: PairOfFiles | None, options: DistillOptions, plan: Plan
) -> dict[str, Any]:
    """All that the student depends on, but for how long it is trained, and settings, which training looks at itself."""
    files = [path for text in texts for path in (text.src, text.ref) if path is not None]
    files += [] if valid is None else [valid.src, valid.tgt]
    return {
        "dragoman distill": __version__,
        "teachers": [bundle.facts.sha256 for bundle in teacher.bundles],
        "texts": [fingerprint(path) for path in files],
        "beam_size": plan.search.decode.beam_size,
        "engine": plan.engine.name,
        "languages": [plan.src_lang, plan.tgt_lang],
        **{name: getattr(options, name) for name in OF_THE_RUN},
    }  # fmt: skip


def _pairs(
    teacher: Translator, plan: Plan, texts: Sequence[Text], folder: Path, options: DistillOptions, ticker: Ticker
) -> tuple[PairOfFiles, dict[str, int]]:
    """What the student learns from, and what was counted; made, or as an earlier call made it."""
    src, tgt = sides_of(folder, "pairs", (plan.src_lang, plan.tgt_lang))
    pairs = PairOfFiles(src=src, tgt=tgt)
    counted = folder / "pairs.json"
    if not counted.is_file():
        translations = translate_texts(teacher, plan, texts, folder, ticker)
        counts = choose(texts, translations, plan, (pairs.src, pairs.tgt), options.drop_worst, ticker)
        write_text(counted, json.dumps(counts) + "\n")
    found: dict[str, int] = json.loads(counted.read_text(encoding="utf-8"))
    rest = ", ".join(f"{count:,} {why}" for why, count in found.items() if why not in ("kept", "lines"))
    ticker.say(f"text: {found['kept']:,} of {found['lines']:,} translations to learn from{rest and f' ({rest})'}")
    return pairs, found


def _held_out(text: Text, folder: Path, plan: Plan) -> PairOfFiles:
    """The validation text that is held out of the text with references."""
    src, tgt = sides_of(folder, "valid", (plan.src_lang, plan.tgt_lang))
    valid = PairOfFiles(src=src, tgt=tgt)
    if not (valid.src.is_file() and valid.tgt.is_file()):
        hold_out(text, valid.src, valid.tgt)
    return valid


def _is_trained(run: Path) -> bool:
    return (run / "bundle" / MANIFEST).is_file()


def train_student(
    run: Path, pairs: PairOfFiles, text: Text, valid: PairOfFiles, teacher: Translator, options: DistillOptions,
    plan: Plan,
) -> Trained:  # fmt: skip
    """Train the student, or go on with that."""
    asked: dict[str, Any] = dict(minutes=options.minutes, quiet=options.quiet)
    if list_checkpoints(run / "checkpoints"):
        return train(out=run, resume=True, overrides=options.overrides, **asked)
    if (run / "config.yaml").exists():
        begin_again(run)
    if options.layers is not None:
        asked["from_run"] = run / FOLDER / "start"
        write_shrunk(teacher.bundle, *options.layers, asked["from_run"])
    files = [pairs.src, pairs.tgt]
    if options.with_references and text.ref is not None:
        files += _with_references(text, pairs)
    return train(
        files, out=run, valid_src=valid.src, valid_tgt=valid.tgt,
        overrides=(*_settings(teacher.config, options, plan), *options.overrides), **asked,
    )  # fmt: skip


def _with_references(text: Text, pairs: PairOfFiles) -> list[Path]:
    """The original pairs, without those that are held out."""
    assert text.ref is not None
    if text.held_out is None:
        return [text.src, text.ref]
    src, ref = (side.with_name(f"references{side.suffix}") for side in (pairs.src, pairs.tgt))
    hold_out(text, src, ref, inverted=True)
    return [src, ref]


def _settings(teacher: Config, options: DistillOptions, plan: Plan) -> Iterator[str]:
    """What a student's run has otherwise than one of `dragoman train`, as overrides."""
    yield f"model.dropout={DROPOUT}"
    if options.shrink is not None:  # all else is as in the run to start from
        yield f"train.lr={SHRUNK_RATE}"
        return
    yield f"model.preset={options.preset}"
    for side in ("src_lang", "tgt_lang"):
        if lang := getattr(plan, side):
            yield f'data.{side}="{lang}"'
    tokenizer = teacher.data.tokenizer
    for name in ("kind", "vocab_size", "joint"):
        yield f"data.tokenizer.{name}={str(getattr(tokenizer, name)).lower()}"
    if not tokenizer.joint:
        yield "model.share_embeddings=decoder"
    for name in ("beam_size", "length_penalty", "length_penalty_form"):
        yield f"decode.{name}={getattr(teacher.decode, name)}"


def add_shortlist(run: Path, ticker: Ticker) -> None:
    """Learn the student's shortlist from its own text, if its bundle has none yet."""
    bundle = load_bundle(run)
    if bundle.shortlist is None and exporting_engines(bundle.model.config):
        with ticker.task("learning the shortlist"):
            found = shortlists.learn(Store.open(run / "store/train"), bundle.src_tokenizer, bundle.tgt_tokenizer)
            amend_bundle(run, found)
        ticker.say(f"shortlist: {len(found.ids) / (len(found.starts) - 1):.1f} target subwords for each of the source")


def _certificate(
    run: Path, teacher: Translator, plan: Plan, names: Sequence[str], valid: PairOfFiles, counts: dict[str, int],
    ticker: Ticker,
) -> Certificate:  # fmt: skip
    """Measure the student beside its teacher; what ``--fast`` takes goes into its bundle, and its export beside it."""
    path, manifest = run / CERTIFICATE, read_manifest(find_bundle(run), "bundle")
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        found = Certificate.from_json(path.read_text(encoding="utf-8"))
        if found.hashes["student"] == manifest.get("sha256"):
            return found
    pairs = list(read_pairs(valid.src, valid.tgt))
    sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    measure = Measuring(sources, references, plan.tgt_lang, ticker)
    direction = {"to": plan.options.to, "from_lang": plan.options.from_lang}
    found = certify(teacher, direction, names, Translator.load(run), measure, counts, ticker)
    chosen = found.rows[found.chosen]
    amend_bundle(run, fast=asdict(Fast(beam_size=chosen.beam_size, shortlist=chosen.shortlist)))
    for toolkit in exporting_engines(load_bundle(run).model.config):
        if engine_class(toolkit.engine).is_installed():
            export(run, toolkit.name, quantization="int8")
    manifest = read_manifest(find_bundle(run), "bundle")
    found = found._replace(hashes={**found.hashes, "student": str(manifest.get("sha256"))})
    write_text(path, found.to_json() + "\n")
    return found
