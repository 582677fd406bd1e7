"""Examine text before training, or a run after it, as ``dragoman doctor`` does.

    diagnosis = diagnose_run(Path("runs/first"))
    print(diagnosis.as_text())

In a notebook, a diagnosis shows itself as a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.bundle import load_bundle
from dragoman.config import Config, ModelConfig, OneFile, TextFiles, each, named_with, read_yaml, with_overrides
from dragoman.data.texts import Langs, files_of, files_shown, languages_of, refuse_reversed, texts_named
from dragoman.doctor.facts import corpus_facts, fact_lines, quantiles
from dragoman.doctor.findings import FIT, MEND, Finding, ranked, report, verdict
from dragoman.doctor.memory import batch_findings
from dragoman.doctor.mending import MENDABLE, Mended
from dragoman.doctor.mixture import Part, entry_sizes, merge_examinations, mixture_findings
from dragoman.doctor.page import page
from dragoman.doctor.paired_lines import Pairs, Reading, chunks
from dragoman.doctor.repeats import overlap_findings
from dragoman.doctor.run_checks import check_run
from dragoman.doctor.text_checks import Examination, examine, examine_set
from dragoman.errors import ConfigError, as_command
from dragoman.files import MANIFEST, free_name
from dragoman.languages.codes import language_of
from dragoman.languages.known import is_unspaced
from dragoman.pages.render import framed
from dragoman.progress import Ticker
from dragoman.ready import run_folder
from dragoman.training.defaults import choose_sizes, doubts_about, with_languages
from dragoman.training.memory import device_memory, n_parameters
from dragoman.training.record import Record, read_run
from dragoman.training.task import task_of

TextSets = Mapping[str, Sequence[TextFiles]]
"""The texts of ``train``, ``valid`` and ``test``, by these names."""

LANGUAGE_SETTINGS = ("data.src_lang", "data.tgt_lang")

SUBWORDS_A_WORD = 1.5
"""Rough number of subwords per word in languages with spaces; other languages are counted in characters."""


class Diagnosis(NamedTuple):
    """Findings about a corpus or a run, worst first, with the facts they rest on."""

    title: str
    facts: dict[str, Any]
    findings: list[Finding]
    text: Examination | None = None
    run: Record | None = None
    entries: tuple[TextFiles, ...] = ()  # the training texts that were examined
    trains: str = ""  # the command that trains on them
    mended: Mended | None = None  # what was written of them
    config_path: Path | None = None  # the configuration, and the options, with which they were examined
    options: tuple[object, ...] = ()

    @property
    def verdict(self) -> str:
        """``fit to train`` or ``mend first`` of text; "" of a run."""
        return verdict(self.findings) if self.entries else ""

    def next_steps(self) -> list[str]:
        """Return the verdict on text, and the command that comes next; nothing for a run."""
        if not self.entries:
            return []
        if self.verdict == FIT:
            return [FIT, f"next: {self.trains}"]
        costly = [finding for finding in self.findings if finding.is_harmful]
        words = f"{MEND}: {len(costly)} finding{'s' * (len(costly) > 1)} would spoil the training or cost quality"
        if self.mended is not None:
            files, config = self.mended.files, () if self.config_path is None else (self.config_path,)
            langs = _language_options(self.entries[0], (language_of(files[0]), language_of(files[1])))
            again = as_command("dragoman", "doctor", *config, *files, *langs, *self.options)
            return [words, f"next: {again}"] if self.mended.n_written else [words]
        if len(self.entries) > 1 or not any(finding.name in MENDABLE for finding in costly):
            return [words]
        return [words, f"next: {mend_command(self.entries[0])}"]

    def as_json(self) -> dict[str, Any]:
        """Return the title, the facts and the findings as plain values for JSON."""
        findings = [finding.as_json() for finding in self.findings]
        return {"of": self.title, "verdict": self.verdict, "facts": self.facts, "findings": findings}

    def as_text(self) -> str:
        """Return the report as lines of text for a terminal."""
        findings = report(self.findings) if self.findings else "no problems found"
        first, *following = self.next_steps() or [""]
        steps = [first, *(f"  {line}" for line in following), ""] if first else []
        return "\n".join([self.title, *steps, *fact_lines(self.facts), "", findings])

    def as_page(self) -> str:
        """Return the report as one HTML page; without matplotlib it has no figures and says so."""
        return page(self.title, self.next_steps(), self.facts, self.findings, self.text or self.run)

    def _repr_html_(self) -> str:
        """Return the page in a frame, as notebooks show it."""
        return framed(self.as_page(), 600)


def diagnose_run(folder: Path) -> Diagnosis:
    """Diagnose a run from its log, its configuration and the counts of its stores.

    Raises:
        ConfigError: The folder holds no run, or its log cannot be read.
    """
    run = read_run(folder)
    facts: dict[str, Any] = {"step": run.step, "target_tokens": run.tokens}
    for name, lengths in zip(("source_subwords", "target_subwords"), run.lengths(), strict=False):
        facts[name] = quantiles(lengths)
    if run.validations:
        quality = task_of(run.config).quality
        best = max(run.validations, key=lambda v: (v[quality], -v["loss"]))  # the order in which training chooses
        facts |= {f"best_{quality}": round(best[quality], 2), "best_step": best["step"]}
    return Diagnosis(f"run {folder}", facts, ranked(check_run(run)), run=run)


def diagnose_model(folder: Path) -> Diagnosis:
    """Diagnose a run, or a bundle without a log, such as an imported or a ready one.

    Raises:
        DragomanError: It cannot be read.
    """
    model = model_folder(folder)
    has_log = model is None or (model / "log.jsonl").exists()
    return diagnose_bundle(folder) if not has_log and _is_bundle(model or folder) else diagnose_run(folder)


def model_folder(path: Path) -> Path | None:
    """Return the folder of a run, of a bundle, or of the ready bundle of that name; None if ``path`` names text."""
    folder = run_folder(path)
    if folder != path and any(Path().glob(f"{path}.*")):  # files of text with that beginning
        return None
    return folder if (folder / "config.yaml").is_file() or _is_bundle(folder) else None


def _is_bundle(folder: Path) -> bool:
    """Return True if a folder is a bundle or has one."""
    return any((place / MANIFEST).is_file() for place in (folder, folder / "bundle"))


def diagnose_bundle(folder: Path) -> Diagnosis:
    """Check the files of a bundle, which has no log, and report what is known about its training.

    Raises:
        BundleError: It is damaged.
    """
    bundle = load_bundle(folder)
    known, data = bundle.facts, bundle.config.data
    facts: dict[str, Any] = {
        "step": known.step, "training_pairs": known.train_pairs, "source_vocabulary": bundle.src_tokenizer.vocab_size,
        "target_vocabulary": bundle.tgt_tokenizer.vocab_size, "parameters": n_parameters(bundle.sizes),
        **{f"validation_{name}": round(score, 2) for name, score in known.validation.items()},
    }  # fmt: skip
    files = f"--src test.{data.src_lang or 'src'} --ref test.{data.tgt_lang or 'tgt'}"
    advice = f"measure it on text of yours: {as_command('dragoman', 'evaluate', folder)} {files}"
    what = f"a bundle from {data.src_lang or '?'} to {data.tgt_lang or '?'}: its files are whole, and it has no log"
    finding = Finding("note", "no-log", what, advice)
    return Diagnosis(f"bundle {folder}", {name: fact for name, fact in facts.items() if fact is not None}, [finding])


def diagnose_text(
    config_path: Path | None, texts: TextSets, overrides: Sequence[str], memory: float | None, quiet: bool
) -> Diagnosis:
    """Examine parallel text, look for test text in the training text, and check that the batch fits in memory.

    Args:
        config_path: A configuration. Its texts are examined where ``texts`` names none.
        texts: The texts of each set, in any form that training takes.
        overrides: Settings that replace those of the configuration, such as ``["train.batch_tokens=8192"]``.
        memory: Memory for training in GiB; None takes the memory of the GPU or machine.
        quiet: True if no progress is printed.

    Raises:
        ConfigError: There is nothing to examine, or the configuration is wrong.
        DataError: A file cannot be read.
    """
    settings, sets = _settings(config_path, overrides), examined_texts(config_path, texts, overrides)
    train, where = sets["train"], str(config_path or "--set")
    # A wrong configuration is refused now: reading the text may take minutes.
    config = None if config_path is None else _configuration(settings, train, named_with(where, overrides))
    parts = [Part(entry, examine(entry, Ticker(quiet))) for entry in train]
    examination = parts[0].examination if len(parts) == 1 else merge_examinations(parts)
    findings = [*examination.findings, *(mixture_findings(parts) if len(parts) > 1 else ())]
    for name in ("valid", "test"):
        entries = sets.get(name, ())
        for entry in entries:
            label = files_shown(entry) if len(entries) > 1 else ""
            reading, of_bytes = examine_set(entry, name)
            overlap = overlap_findings(examination.digests, entry, name, reading)
            findings += (
                finding._replace(text=label) for finding in (*of_bytes, *_doubts(name, entry, reading), *overlap)
            )
    if config is None:
        chosen = choose_sizes(examination.pairs, settings.get("model"))
        config = _configuration(with_overrides(chosen, overrides), train, where)
    findings += _memory_findings(config, examination, memory)
    facts = corpus_facts(examination)
    if len(parts) == 1:
        title = parts[0].name + (" (its pairs are numbered from 1)" if isinstance(train[0], OneFile) else "")
    else:
        title = f"{f'data.train of {where}' if 'train' not in texts else 'training text'}, {len(parts)} texts"
        facts = {**entry_sizes(parts), **facts}
    trains = train_command(config_path, texts, overrides)
    return Diagnosis(
        title, facts, ranked(findings), text=examination, entries=tuple(train), trains=trains, config_path=config_path,
        options=tuple(_options(texts, overrides, memory)),
    )  # fmt: skip


def examined_texts(
    config_path: Path | None, texts: TextSets, overrides: Sequence[str]
) -> dict[str, tuple[TextFiles, ...]]:
    """Return the texts of each set that ``diagnose_text`` examines; its arguments and errors are the same."""
    settings = _settings(config_path, overrides)
    if settings.get("task") == "parsing":
        raise ConfigError(
            f"{config_path}: doctor does not check treebanks (training does while reading them); "
            "give a run, or parallel text"
        )
    return _sets(settings, texts)


def _settings(config_path: Path | None, overrides: Sequence[str]) -> dict[str, Any]:
    return with_overrides(read_yaml(config_path) if config_path is not None else {}, overrides)


def train_command(config: Path | None, texts: TextSets, overrides: Sequence[str]) -> str:
    """Return the command that trains on what was examined: the configuration, and texts that were named beside it."""
    train, valid = (texts.get(name, ()) for name in ("train", "valid"))
    words: list[object] = ["dragoman", "train", *([] if config is None else [config])]
    words += [path for entry in train for path in files_of(entry)]
    words += [word for entry in valid for path in files_of(entry) for word in ("--valid", path)]
    words += next(filter(None, map(_columns, (*train, *valid))), [])
    words += [word for override in overrides for word in ("--set", override)]
    run = Path("runs/first")
    return as_command(*words, "--out", free_name(run) if run.exists() else run)


def mend_command(entry: TextFiles) -> str:
    """Return the command that writes a text mended, into files that are not there yet."""
    langs = [lang or side for lang, side in ((entry.src_lang, "src"), (entry.tgt_lang, "tgt"))]
    if langs[0] == langs[1]:
        langs = ["src", "tgt"]
    names = ([f"clean{f'-{i}' if i > 1 else ''}.{lang}" for lang in langs] for i in count(1))
    free = next(pair for pair in names if not any(Path(name).exists() for name in pair))
    langs_set = _language_options(entry, languages_of([entry]))
    return as_command("dragoman", "doctor", *files_of(entry), *_columns(entry), *langs_set, "--write", *free)


def _language_options(entry: TextFiles, by_name: Langs) -> list[str]:
    """Return the options that set the languages of a text where its files, named ``by_name``, do not tell them."""
    sides = zip(LANGUAGE_SETTINGS, (entry.src_lang, entry.tgt_lang), by_name, strict=True)
    return [
        word
        for name, lang, named in sides
        if lang is not None and lang != named
        for word in ("--set", f"{name}={lang}")
    ]


def _options(texts: TextSets, overrides: Sequence[str], memory: float | None) -> Iterator[object]:
    """Yield the options of ``dragoman doctor`` but the training text and its languages, to examine it once more."""
    for name, flags in (("valid", ("--valid-src", "--valid-tgt")), ("test", ("--test-src", "--test-ref"))):
        entries = texts.get(name, ())
        if len(entries) == 1 and len(files := files_of(entries[0])) == 2:  # no option names others
            yield from chain.from_iterable(zip(flags, files, strict=True))
    for override in overrides:
        if override.partition("=")[0].strip() not in LANGUAGE_SETTINGS:
            yield from ("--set", override)
    if memory is not None:
        yield from ("--memory", f"{memory:g}")


def _columns(entry: TextFiles) -> list[str]:
    """Return the option that names the columns of a text."""
    return ["--columns", ",".join(entry.columns)] if isinstance(entry, OneFile) and entry.columns else []


def config_and_texts(
    paths: Sequence[Path], columns: tuple[str, str] | None = None
) -> tuple[Path | None, tuple[TextFiles, ...]]:
    """Split named files into the configuration, if the first one is YAML, and the training texts.

    Args:
        paths: Files as the command line names them.
        columns: The columns of source and target in each table and translation memory.

    Raises:
        ConfigError: A file is neither a configuration nor a text.
    """
    config = paths[0] if paths and paths[0].suffix.lower() in (".yaml", ".yml") else None
    return config, tuple(texts_named(paths[1:] if config is not None else paths, columns))


def _sets(settings: Mapping[str, Any], texts: TextSets) -> dict[str, tuple[TextFiles, ...]]:
    """Return the texts of each set, from ``texts`` or else from the settings, with their languages.

    Raises:
        ConfigError: There is nothing to examine, or a language that must be known is not.
        DataError: A table or a translation memory cannot be read.
    """
    data = settings.get("data")
    data = data if isinstance(data, dict) else {}
    langs = data.get("src_lang"), data.get("tgt_lang")
    sets = {name: tuple(entries) for name, entries in texts.items()}
    for name in ("train", "valid"):
        if name not in sets and data.get(name) is not None:
            entries = Config.from_mapping({"data": {"train": data[name]}}, "configuration").data.train
            sets[name] = each(entries)
    if "train" not in sets:
        raise ConfigError("nothing to examine: give a run, a configuration, or training text such as train.en train.de")
    # The languages of each text are decided by the same code as in training; a test set has those of the others.
    dumped = {name: [text.model_dump() for text in sets[name]] for name in ("train", "valid") if name in sets}
    as_named = Config.from_mapping({"data": {**dumped, "src_lang": langs[0], "tgt_lang": langs[1]}}).data
    completed = with_languages(as_named)
    langs = completed.src_lang, completed.tgt_lang
    for name in dumped:
        sets[name] = each(getattr(completed, name))
    if None not in langs:
        languages_of((*sets["train"], *sets.get("test", ())))  # raises if they differ
    return {name: tuple(_with_languages(entry, langs) for entry in entries) for name, entries in sets.items()}


def _with_languages(entry: TextFiles, langs: Langs) -> TextFiles:
    """Return a text with both languages, taken from itself, else from ``langs``, else from the file names."""
    src, tgt = entry.src_lang or langs[0], entry.tgt_lang or langs[1]
    refuse_reversed(entry, (src, tgt))
    if src is None or tgt is None:
        src_by_name, tgt_by_name = languages_of([entry])
        src, tgt = src or src_by_name, tgt or tgt_by_name
    return entry.model_copy(update={"src_lang": src, "tgt_lang": tgt})


def _configuration(settings: Mapping[str, Any], train: Sequence[TextFiles], where: str) -> Config:
    """Return the configuration that training on these texts would have, as far as memory depends on it.

    Raises:
        ConfigError: It does not fit the schema, or entries differ in their languages and do not all name them.
    """
    texts = [text.model_dump(mode="json", exclude_defaults=True) for text in train]
    only = {name: path for name, path in texts[0].items() if name in ("src", "tgt", "file", "columns")}
    files = {"train": texts if len(texts) > 1 else only}
    # Training chooses the warm-up from its own length, which is not known here; memory does not depend on it.
    steps = {"warmup_steps": 1} if where == "--set" else {}
    data, training = settings.get("data", {}), settings.get("train", {})
    # A section that is not a mapping is passed on as it is, so that the schema refuses it.
    sections = {
        **settings,
        "data": {**data, **files} if isinstance(data, dict) else data,
        "train": {**steps, **training} if isinstance(training, dict) else training,
    }
    return Config.from_mapping(sections, where)


def _doubts(name: str, entry: TextFiles, reading: Reading) -> Iterator[Finding]:
    """Yield a finding for each side of a validation or test set that looks like another language."""
    pairs = chain.from_iterable(zip(*sides, strict=True) for sides in chunks(Pairs(entry, reading=reading)))
    in_words = {"valid": "validation"}.get(name, name)
    for doubt in doubts_about(in_words, entry, (entry.src_lang, entry.tgt_lang), pairs):
        yield Finding("warning", f"{name}-language", doubt, "give the set in the languages of the training text")


def _memory_findings(config: Config, examination: Examination, memory: float | None) -> Iterator[Finding]:
    """Yield a finding if the batch does not fit in ``memory`` GiB or in that of the device, or if that is not known."""
    import torch

    from dragoman.device import resolve_device, resolve_precision

    if config.model.architecture != "transformer":
        unknown = f"the memory of a training step is not known for model.architecture = {config.model.architecture}"
        advice = "train a few steps; lower train.batch_tokens if they run out of memory"
        yield Finding("note", "memory", unknown, advice)
        return
    try:
        device = resolve_device(config.train.device)
        precision = resolve_precision(config.train.precision, device)
    except ConfigError as error:
        # The configuration is for another machine: its memory must be named, and its precision is assumed.
        if memory is None:
            unknown = f"it is not known if a batch fits: {error}"
            yield Finding("note", "memory", unknown, "name the memory of the machine that trains: --memory GIB")
            return
        device, precision = torch.device("cpu"), "fp32" if config.train.precision == "fp32" else "bf16"
    on_device = {"precision": precision, "device": device.type}
    config = config.model_copy(update={"train": config.train.model_copy(update=on_device)})
    vocab_size = config.data.tokenizer.vocab_size
    sizes = ModelConfig(**config.model.model_dump(), src_vocab_size=vocab_size, tgt_vocab_size=vocab_size)
    length = min(config.data.max_tokens, _longest_subwords(config, examination)) + 1
    if memory is not None:
        yield from batch_findings(config, sizes, length, memory * 2**30, "the given")
        return
    owner = "the GPU's" if device.type == "cuda" else "this machine's"
    yield from batch_findings(config, sizes, length, device_memory(device), owner)


def _longest_subwords(config: Config, examination: Examination) -> int:
    """Estimate the number of subwords of the longest side in the corpus from its words."""
    longest = 0.0
    for side in (0, 1):
        langs = {pair[side] for pair in config.data.pairs}
        factor = 1.0 if all(is_unspaced(lang) for lang in langs) else SUBWORDS_A_WORD
        longest = max(longest, factor * int(examination.words[:, side].max(initial=0)))
    return max(1, round(longest))
