"""Knowledge distillation: the function behind ``dragoman distill``.

    dragoman.distill("runs/teacher", src="train.en", ref="train.de", out="runs/student")

The student's run is an ordinary one, which also has

    distillation/           the teacher's translations, the pairs to learn from, and the request
    exports/                the student in int8 for each engine of another toolkit that is installed
    distillation.json       the certificate: quality, speed and size compared with the teacher's

Each step writes its files completely or not at all: after a kill the same call resumes.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from dragoman import __version__
from dragoman.bundle import Fast, amend_bundle, find_bundle, load_bundle
from dragoman.config import PRESETS, Config, PairOfFiles, TextFiles, all_settings, each, with_overrides
from dragoman.data import shortlist as shortlists
from dragoman.data.compression import refuse_a_pipe
from dragoman.data.corpus import count_lines, lines_of, read_pairs
from dragoman.data.sides import doubt_about
from dragoman.data.store import Store, fingerprint
from dragoman.data.twins import Twins, neighbours
from dragoman.distillation.certificate import Certificate, Measuring, certify
from dragoman.distillation.options import DistillOptions
from dragoman.distillation.own_text import OwnText, own_text
from dragoman.distillation.request import REQUEST, check_request
from dragoman.distillation.shrink import check_shrinkable, write_shrunk
from dragoman.distillation.sizes import sizes_below
from dragoman.distillation.text import (
    Text,
    check_languages,
    check_text,
    choose,
    hold_out,
    is_damaged,
    sides_of,
    translate_texts,
)
from dragoman.errors import ConfigError, DataError
from dragoman.files import (
    MANIFEST,
    as_path,
    explained,
    pinned,
    read_manifest,
    read_report,
    remove_leftovers,
    whole_files,
    write_report,
    write_text,
)
from dragoman.languages.codes import variety
from dragoman.languages.scripts import is_blank
from dragoman.locks import locked
from dragoman.options import LanguageOptions, takes
from dragoman.progress import Ticker
from dragoman.toolkits.choice import exporting_engines
from dragoman.toolkits.export import export
from dragoman.toolkits.options import EngineOptions
from dragoman.training.checkpoint import list_checkpoints
from dragoman.training.folder import begin_again, refuse_a_run
from dragoman.training.hold_out import LEAST_EVERY, draw
from dragoman.training.run import Trained, train
from dragoman.translation.language_pairs import Langs, check_names, check_sides, name_from
from dragoman.translation.options import TranslateOptions
from dragoman.translation.plan import Plan
from dragoman.translation.translator import Translator

CERTIFICATE = "distillation.json"
FOLDER = "distillation"
PAIRS = "pairs.json"
"""Name of the report on the pairs that the student learns from."""

DROPOUT = 0.1
"""Dropout of a student: little, as it is small for its text, which the teacher has made simpler."""

SHRUNK_RATE = 7e-4
"""Peak learning rate for a shrunk teacher: half of training from scratch, as layers must replace removed ones."""

LEAST_OF_TEACHER = 0.8
"""Share of the teacher's BLEU below which a student has learned too little."""

OF_THE_RUN = (
    "length_penalty", "length_penalty_form", "patience", "best_of", "precision", "drop_worst", "preset", "shrink",
    "with_references",
)  # fmt: skip
"""Options that cannot change when a distillation is resumed."""


class Distilled(NamedTuple):
    """Result of ``distill``: the student's run and its certificate; or the signal that stopped training."""

    run: Path
    certificate: Certificate | None
    signal: int | None = None
    diverged: str | None = None  # how the student's training in this call diverged, as ``Trained`` says it


@dataclass(frozen=True, kw_only=True)
class _Job:
    """One call of ``distill``."""

    names: list[str]  # of the teachers
    teacher: Translator
    plan: Plan  # how the teacher translates
    options: DistillOptions
    run: Path  # the student's
    ticker: Ticker

    @property
    def folder(self) -> Path:
        """Folder of the intermediate files."""
        return self.run / FOLDER

    @functools.cached_property
    def own_valid(self) -> OwnText:
        """Validation text of the teacher in these languages."""
        data = self.teacher.config.data
        texts = () if data.valid is None else each(data.valid)
        if self.teacher.languages.targets:
            langs = self.plan.src_lang, self.plan.tgt_lang
            texts = tuple(text for text in texts if (text.src_lang or data.src_lang, text.tgt_lang) == langs)
        with self.ticker.task("checking the validation text of the teacher"):
            return own_text(self.teacher.run or self.names[0], texts)


@takes(DistillOptions)
def distill(
    teachers: Path | str | Sequence[Path | str], *, src: Path | str, out: Path | str,
    options: DistillOptions | None = None, **changes: Any,
) -> Distilled:  # fmt: skip
    """Train a student on the translations of its teachers; after a kill the same call resumes.

    Args:
        teachers: A run or a bundle; several are an ensemble, and must share their subwords.
        src: Text of the source language, one sentence a line (also ``.gz``, ``.zst``).
        out: The student's run folder.
        options: All options; ``changes`` are options by name. ``DistillOptions`` explains each.

    Returns:
        ``run``, the student's folder, and its ``certificate``; or the ``signal`` that stopped training.

    Raises:
        ConfigError, DataError, BundleError: An argument or a file cannot be used; nothing is half-written.
    """
    options = _with_pinned_paths(DistillOptions.of(options, changes))
    src = pinned(src)
    names = [str(teachers)] if isinstance(teachers, Path | str) else list(map(str, teachers))
    run, ticker = pinned(out), Ticker(options.quiet)
    _refuse_another_run(run)
    teacher = Translator.load(names)
    plan = _plan(teacher, names, options)
    job = _Job(names=names, teacher=teacher, plan=plan, options=options, run=run, ticker=ticker)
    _check_teacher(job)
    _check_settings(job)
    texts = _texts(src, job)
    valid = _validation(texts, job)
    request = _request(texts, valid, job)
    with explained(job.folder):
        job.folder.mkdir(parents=True, exist_ok=True)
    with locked(job.folder):
        check_request(job.folder / REQUEST, request, f"{run}: its distillation")
        for own_folder in (run, job.folder):
            remove_leftovers(own_folder)
        pairs, counts = _pairs(texts, job)
        valid = valid or _held_out(texts[0], job)
        diverged = None
        if not (run / "bundle" / MANIFEST).is_file():
            trained = train_student(pairs, texts[0], valid, job)
            if trained.signal is not None:
                return Distilled(Path(out), None, trained.signal)
            diverged = trained.diverged
        elif options.minutes is not None or options.overrides:
            ticker.say(f"{run}: the student was trained by an earlier call; settings of training are not used any more")
        with locked(run):  # its training may have been killed before it removed its own lock
            add_shortlist(run, ticker)
            certificate = _certificate(valid, counts, job)
        _report_shortcomings(certificate, job)
        return Distilled(Path(out), certificate, diverged=diverged)


def _with_pinned_paths(options: DistillOptions) -> DistillOptions:
    """Return options with absolute paths: the files are opened in each step of a long call."""
    ref, valid_src, valid_ref = (
        path if path is None else pinned(path) for path in (options.ref, options.valid_src, options.valid_ref)
    )
    return replace(options, mono=tuple(map(pinned, options.mono)), ref=ref, valid_src=valid_src, valid_ref=valid_ref)


def _report_shortcomings(certificate: Certificate, job: _Job) -> None:
    """Print whether the student is worse than it should be, or no faster or smaller, and what to do."""
    teacher, student = certificate.rows[0], certificate.rows[certificate.chosen]
    ours = [row for row in certificate.rows if row.engine == teacher.engine and row.precision == teacher.precision]
    size = next((row.megabytes for row in ours if row.who == "student"), student.megabytes)
    if student.bleu < LEAST_OF_TEACHER * teacher.bleu:
        job.ticker.say(
            f"warning: the student has BLEU {student.bleu:.1f} where the teacher has {teacher.bleu:.1f}: it has "
            "learned too little. Distil again into another --out with more --minutes, or with more text (--mono)"
        )
    if size >= teacher.megabytes or student.sentences_per_s < teacher.sentences_per_s:
        job.ticker.say(
            f"warning: the student is {size / teacher.megabytes:.1f} times as large as the teacher and "
            f"{student.sentences_per_s / teacher.sentences_per_s:.1f} times as fast; a smaller --preset helps"
        )


def _refuse_another_run(run: Path) -> None:
    """Refuse a folder with a run that no distillation began, or with files of others."""
    if run.exists() and not run.is_dir():
        raise ConfigError(f"{run}: is a file; name a folder with --out")
    if (run / FOLDER / REQUEST).is_file():
        return
    if any((run / name).exists() for name in ("config.yaml", "checkpoints", "bundle", MANIFEST)):
        raise ConfigError(f"{run} holds a run that no distillation began: choose another --out")
    refuse_a_run(run)  # training would, after hours of translating


def _check_teacher(job: _Job) -> None:
    """Refuse teachers whose languages differ, a student of other languages, and a shrunk student of several."""
    several = len(job.teacher.src_tokenizer.targets) > 1
    if several and job.options.shrink is not None:
        raise ConfigError(
            f"--shrink keeps the subwords of {job.names[0]}, whose sources name one of several target languages, and a "
            "student has one: use --preset"
        )
    check_languages(job.teacher, job.names, job.plan)
    for override in job.options.overrides:
        name, _, value = override.partition("=")
        for side, lang in (("data.src_lang", job.plan.src_lang), ("data.tgt_lang", job.plan.tgt_lang)):
            if name.strip() == side and lang and variety(value.strip()) != variety(lang):
                raise ConfigError(f"override {override}: must be {lang} as for the teacher, got {value.strip()}")


def _check_settings(job: _Job) -> None:
    """Refuse settings that the student's training would refuse, before hours of translating."""
    _ = job.options.settings  # refuses a limit that is given twice
    for override in job.options.overrides:
        if override.strip().startswith("train.") and override.partition("=")[0].strip() not in all_settings(Config):
            Config.from_mapping(with_overrides({}, [override]), "the student's settings")
    if job.options.layers is not None:
        check_shrinkable(job.teacher.config, *job.options.layers)
        return  # fine-tuning checks its settings itself
    # the settings of train depend on the text, which does not exist yet
    overrides = [override for override in job.options.overrides if not override.strip().startswith("train.")]
    files = {"data": {"train": {"src": "pairs.src", "tgt": "pairs.tgt"}}}
    Config.from_mapping(with_overrides(files, [*_settings(job), *overrides]), "the student's settings")


def _texts(src: Path, job: _Job) -> list[Text]:
    """Return the texts to translate; each can be opened, has its lines counted, and is in the teacher's language."""
    ref = job.options.ref
    sides = () if ref is None else check_names(*_of_teacher(job), src, ref)
    paths = (src, *map(as_path, job.options.mono))
    for path in paths:
        lang = None if job.options.from_lang else job.plan.src_lang
        check_text(path, lang, "the teacher", f"add --from {lang} if it is meant")
    texts = [Text(src=path, n_lines=count_lines(path)) for path in paths]
    valid = _valid_files(job)
    if ref is None or not sides:
        return _without_validation(texts, valid, job)
    refuse_a_pipe(ref)
    if warning := doubt_about(sides[1]):
        job.ticker.say(f"warning: {warning}")
    n_refs = count_lines(ref)
    if n_refs != texts[0].n_lines:
        raise DataError(f"{ref}: {n_refs:,} lines, but {src} has {texts[0].n_lines:,}: line i must translate line i")
    if valid is not None:
        if job.options.with_references:  # training reads them as they are: better refused now than after the teacher
            for _ in read_pairs(src, ref):
                pass
        return _without_validation([replace(texts[0], ref=as_path(ref)), *texts[1:]], valid, job)
    chosen = _chosen(src, as_path(ref), n_refs, job)
    others = texts[1:]
    if others and _made_pairs(job)[1] is None:  # only the choice of pairs needs them
        with job.ticker.task("looking for lines that are held out"):
            held_out = list(_numbered(src, chosen["held_out"]))
            others = [_without(held_out, text) for text in others]
    return [Text(src=src, ref=as_path(ref), n_lines=n_refs, **chosen), *others]


def _without_validation(texts: Sequence[Text], valid: PairOfFiles | None, job: _Job) -> list[Text]:
    """Return texts without the sources of a validation text that is not a part of them, and without their near twins.

    Training compares whole pairs with its validation text, and the pairs of a student have other targets.

    Raises:
        DataError: No line is left.
    """
    # once the pairs are chosen, only those of the references may still have to be
    if valid is None or (_made_pairs(job)[1] is not None and not job.options.with_references):
        return list(texts)
    with job.ticker.task("looking for lines of the validation text"):
        sources = [line for line in lines_of(valid.src) if line.strip()]
        texts = [_without(sources, text) for text in texts]
    if not any(map(_has_a_line_left, texts)):
        raise DataError(
            f"{texts[0].src}: all of its lines stand in the validation text {valid.src}, or nearly: give other text"
        )
    return texts


def _has_a_line_left(text: Text) -> bool:
    """True if a text has a line that is not blank, held out or a near twin of these."""
    out = text.twins.union(text.held_out or ())
    return any(number not in out and not is_blank(line) for number, line in enumerate(lines_of(text.src), 1))


def _numbered(path: Path, numbers: frozenset[int]) -> Iterator[str]:
    """Yield the lines of a text that have these numbers, from 1."""
    return (line for number, line in enumerate(lines_of(path), 1) if number in numbers)


def _without(lines: Sequence[str], text: Text) -> Text:
    """Return a text with the numbers of its lines that are among others, and of the near twins of these."""
    same, twins = set(lines), Twins([(line,) for line in {neighbours(line): line for line in lines}.values()])
    numbered = enumerate(lines_of(text.src), 1)
    alike = {number: line for number, line in numbered if line in same or twins.of((line,))}
    held_out = frozenset(number for number, line in alike.items() if line in same)
    return replace(text, held_out=held_out, twins=frozenset(alike) - held_out)


def _of_teacher(job: _Job) -> tuple[str, Langs, str | None]:
    """Return what files are compared with: a name, the teacher's languages, and advice if their names count."""
    langs = job.plan.src_lang, job.plan.tgt_lang
    return "the teacher", langs, name_from(langs, job.options.from_lang)


def _chosen(src: Path, ref: Path, n_refs: int, job: _Job) -> dict[str, frozenset[int]]:
    """Return the numbers of the lines to hold out and of their near twins; no numbers if the text is too short."""
    if n_refs < LEAST_EVERY:
        return {"held_out": frozenset()}

    def read(_: TextFiles) -> Iterator[tuple[str, str]]:
        return zip(lines_of(src), lines_of(ref), strict=True)

    text, teacher = PairOfFiles(src=src, tgt=ref), job.teacher
    with job.ticker.task("choosing pairs for validation"):
        pool = draw([text], [text], read)
    held_out = pool.choose((teacher.src_tokenizer, teacher.tgt_tokenizer), teacher.config.data)
    return {
        "held_out": frozenset(place + 1 for place, pair in held_out.pairs.items() if not is_damaged(*pair)),
        "twins": frozenset(place + 1 for place in held_out.twins),
    }


def _valid_files(job: _Job) -> PairOfFiles | None:
    """Return the requested validation text, or the teacher's own of these languages; None if there is neither."""
    options = job.options
    if options.valid_src is not None and options.valid_ref is not None:
        return PairOfFiles(src=as_path(options.valid_src), tgt=as_path(options.valid_ref))
    own = job.own_valid.texts
    if len(own) == 1 and isinstance(own[0], PairOfFiles):
        files = {"src": pinned(own[0].src), "tgt": pinned(own[0].tgt)}
        return own[0].model_copy(update={**files, "src_lang": None, "tgt_lang": None})
    return None


def _validation(texts: Sequence[Text], job: _Job) -> PairOfFiles | None:
    """Return the validation text; None: a part of the text with references will be held out.

    Raises:
        ConfigError: There is no validation text, and there are no references.
        DataError: The validation text cannot be read, or is empty.
    """
    valid = _valid_files(job)
    if valid is None and not texts[0].held_out:
        raise ConfigError(f"no validation text: {_why_no_validation(texts[0], job)}")
    if valid is not None and job.options.valid_src is None and job.own_valid.taken:
        job.ticker.say(
            f"validation: {job.own_valid.taken}, taken for the teacher's own by name, as {job.names[0]} does not note "
            "the content"
        )
    if valid is not None and job.options.valid_src is not None:
        for warning in check_sides(*_of_teacher(job), valid.src, valid.tgt):
            job.ticker.say(f"warning: {warning}")
    if valid is None:
        held_out = len(texts[0].held_out or ())
        job.ticker.say(
            f"validation: {held_out:,} pairs of {texts[0].src} and {texts[0].ref} are held out, as "
            f"{_why_not_of_teacher(job)}; if the teacher was trained on them, its scores promise too much"
        )
    elif not sum(1 for _ in read_pairs(valid.src, valid.tgt)):  # to the end: a fault is refused before hours of work
        raise DataError(f"{valid.src}: a validation text without a line; give another one with --valid-src")
    return valid


def _why_not_of_teacher(job: _Job) -> str:
    """Return why the teacher's validation text is not used."""
    valid = job.teacher.config.data.valid
    if job.own_valid.missing is not None:
        return f"that of the teacher is no longer there ({job.own_valid.missing})"
    if job.own_valid.changed is not None:
        return f"that of the teacher has changed ({job.own_valid.changed})"
    if valid is not None and job.teacher.languages.targets:
        return "that of the teacher is not two files in these languages"
    return "the teacher has none of its own" if valid is None else "that of the teacher is not two files"


def _why_no_validation(text: Text, job: _Job) -> str:
    """Return what is missing to validate, and what to give."""
    of_teacher = _why_not_of_teacher(job)
    if text.held_out is None:
        return (
            f"{of_teacher}; give --valid-src and --valid-ref, or the references of --src with --ref, of which 1% is "
            "held out"
        )
    return (
        f"{text.n_lines:,} pairs of --src and --ref are too few to hold out 1%, which takes {LEAST_EVERY}, and "
        f"{of_teacher}; give --valid-src and --valid-ref"
    )


def _plan(teacher: Translator, names: Sequence[str], options: DistillOptions) -> Plan:
    """Plan how the teacher translates; impossible options are refused here."""
    if teacher.is_parser:
        raise ConfigError(f"{names[0]}: a parser cannot be distilled; give a translation run")
    how = options.of_group(EngineOptions) | options.of_group(LanguageOptions)
    if options.beam_size is None and options.best_of > 1:
        how["beam_size"] = max(options.best_of, teacher.config.decode.beam_size)
    return teacher.plan(TranslateOptions(n_best=options.best_of, protect=False, threads=options.threads, **how))


def _request(texts: Sequence[Text], valid: PairOfFiles | None, job: _Job) -> dict[str, Any]:
    """Return everything that the student depends on, except its training settings.

    Training checks them itself when it is resumed; of a finished student ``distill`` says that they are not used.
    """
    plan = job.plan
    files = [path for text in texts for path in (text.src, text.ref) if path is not None]
    files += [] if valid is None else [valid.src, valid.tgt]
    return {
        "dragoman distill": __version__,
        "teachers": [bundle.facts.sha256 for bundle in job.teacher.bundles],
        "texts": [fingerprint(path) for path in files],
        "beam_size": plan.search.decode.beam_size,
        "engine": plan.engine.name,
        "languages": [plan.src_lang, plan.tgt_lang],
        **{name: getattr(job.options, name) for name in OF_THE_RUN},
    }  # fmt: skip


def _made_pairs(job: _Job) -> tuple[tuple[Path, Path], dict[str, Any] | None]:
    """Return where the pairs belong that the student learns from, and the report of the call that made them, if any."""
    sides = sides_of(job.folder, "pairs", (job.plan.src_lang, job.plan.tgt_lang))
    return sides, read_report(job.folder / PAIRS, sides)


def _pairs(texts: Sequence[Text], job: _Job) -> tuple[PairOfFiles, dict[str, int]]:
    """Make the pairs that the student learns from, unless an earlier call made them; return them and counts."""
    report_path = job.folder / PAIRS
    sides, report = _made_pairs(job)
    pairs = PairOfFiles(src=sides[0], tgt=sides[1])
    if report is None:
        translations = translate_texts(job.teacher, job.plan, texts, job.folder, job.ticker)
        with explained(report_path), whole_files(sides, report_path) as outs:
            chosen = choose(texts, translations, job.plan, outs, job.options.drop_worst, job.ticker)
        report = {"counts": chosen}
        write_report(report_path, report, sides)
    counts: dict[str, int] = report["counts"]
    dropped = ", ".join(f"{count:,} {why}" for why, count in counts.items() if why not in ("kept", "lines"))
    job.ticker.say(
        f"text: {counts['kept']:,} of {counts['lines']:,} translations to learn from{dropped and f' ({dropped})'}"
    )
    return pairs, counts


def _held_out(text: Text, job: _Job) -> PairOfFiles:
    """Hold validation text out of the text with references, unless an earlier call did; return it."""
    src, tgt = sides_of(job.folder, "valid", (job.plan.src_lang, job.plan.tgt_lang))
    hold_out(text, (src, tgt))
    return PairOfFiles(src=src, tgt=tgt)


def train_student(pairs: PairOfFiles, text: Text, valid: PairOfFiles, job: _Job) -> Trained:
    """Train the student, or resume its training."""
    run, options = job.run, job.options
    settings: dict[str, Any] = dict(minutes=options.minutes, threads=options.threads, quiet=options.quiet)
    if list_checkpoints(run / "checkpoints"):
        return train(out=run, resume=True, overrides=options.overrides, **settings)
    if (run / "config.yaml").exists():
        begin_again(run)
    if options.layers is not None:
        settings["from_run"] = job.folder / "start"
        write_shrunk(job.teacher.bundle, *options.layers, settings["from_run"])
    files = [pairs.src, pairs.tgt]
    if options.with_references and text.ref is not None:
        files += _with_references(text, pairs)
    return train(
        files, out=run, valid_src=valid.src, valid_tgt=valid.tgt,
        overrides=(*_settings(job), *options.overrides), **settings,
    )  # fmt: skip


def _with_references(text: Text, pairs: PairOfFiles) -> list[Path]:
    """Return files of the original pairs, without those that are held out."""
    assert text.ref is not None
    if text.held_out is None:
        return [text.src, text.ref]
    src, ref = (side.with_name(f"references{side.suffix}") for side in (pairs.src, pairs.tgt))
    hold_out(text, (src, ref), inverted=True)
    return [src, ref]


def _settings(job: _Job) -> Iterator[str]:
    """Yield the student's settings that differ from the defaults of ``dragoman train``, as overrides."""
    teacher = job.teacher.config
    yield f"model.dropout={DROPOUT}"
    # a shrunk student takes all other settings from the run that it starts from
    if job.options.shrink is not None:
        yield f"train.lr={SHRUNK_RATE}"
        return
    for name, value in _sizes(job).items():
        yield f"model.{name}={value}"
    for side in ("src_lang", "tgt_lang"):
        if lang := getattr(job.plan, side):
            yield f'data.{side}="{lang}"'
    tokenizer = teacher.data.tokenizer
    for name in ("kind", "vocab_size", "joint", "normalisation"):
        yield f"data.tokenizer.{name}={str(getattr(tokenizer, name)).lower()}"
    if not tokenizer.joint:
        yield "model.share_embeddings=decoder"
    for name in ("beam_size", "length_penalty", "length_penalty_form"):
        yield f"decode.{name}={getattr(teacher.decode, name)}"


def _sizes(job: _Job) -> dict[str, Any]:
    """Return the student's sizes: the preset that was named, or sizes below those of the teacher."""
    overridden = {override.partition("=")[0].strip() for override in job.options.overrides}
    of_size = {"model.preset", *(f"model.{name}" for name in PRESETS["student"])}
    if job.options.preset is not None or overridden & of_size:
        return {"preset": job.options.preset or "student"}
    sizes = sizes_below(job.teacher.bundle.sizes)
    return {"preset": "student"} if sizes == PRESETS["student"] else sizes


def add_shortlist(run: Path, ticker: Ticker) -> None:
    """Learn the student's shortlist from its own text, if its bundle has none yet."""
    bundle = load_bundle(run)
    if bundle.shortlist is None and exporting_engines(bundle.sizes):
        with ticker.task("learning the shortlist"):
            shortlist = shortlists.learn(Store.open(run / "store/train"), bundle.src_tokenizer, bundle.tgt_tokenizer)
            amend_bundle(run, shortlist)
        mean = len(shortlist.ids) / (len(shortlist.starts) - 1)
        ticker.say(f"shortlist: {mean:.1f} target subwords for each of the source")


def _certificate(valid: PairOfFiles, counts: dict[str, int], job: _Job) -> Certificate:
    """Compare the student with its teacher, store the settings of ``--fast`` in its bundle, and export it."""
    run = job.run
    path, manifest = run / CERTIFICATE, read_manifest(find_bundle(run), "bundle")
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        earlier = Certificate.from_json(path.read_text(encoding="utf-8"))
        if earlier.hashes["student"] == manifest.get("sha256"):
            return earlier
    pairs = list(read_pairs(valid.src, valid.tgt))
    sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    measure = Measuring(sources, references, job.plan.tgt_lang, job.ticker)
    direction = {"to": job.plan.options.to, "from_lang": job.plan.options.from_lang}
    certificate = certify(job.teacher, direction, Translator.load(run), measure)
    chosen = certificate.rows[certificate.chosen]
    amend_bundle(run, fast=asdict(Fast(beam_size=chosen.beam_size, shortlist=chosen.shortlist)))
    for toolkit in exporting_engines(load_bundle(run, read=False).sizes):
        export(run, toolkit.name, quantization="int8")
    manifest = read_manifest(find_bundle(run), "bundle")
    hashes = {**certificate.hashes, "student": str(manifest.get("sha256"))}
    certificate = certificate._replace(teachers=tuple(job.names), text=counts, hashes=hashes)
    write_text(path, certificate.to_json() + "\n")
    return certificate
