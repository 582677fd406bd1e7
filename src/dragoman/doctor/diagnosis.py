"""What ``dragoman doctor`` does, as functions: ``of_text`` before training, ``of_run`` after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.config import Config, ModelConfig, OneFile, TextFiles, each, read_yaml, with_overrides
from dragoman.data.texts import languages_of, texts_named
from dragoman.doctor.findings import Finding, ranked, report
from dragoman.doctor.memory import batch_finding
from dragoman.doctor.mixture import Part, facts_of, merged, mixed, name_of
from dragoman.doctor.repeats import overlap
from dragoman.doctor.run_checks import diagnose
from dragoman.doctor.text_checks import Examination, examine, quantiles, summary
from dragoman.errors import ConfigError
from dragoman.languages.known import is_unspaced
from dragoman.pages.render import framed
from dragoman.progress import Ticker
from dragoman.training.defaults import choose_sizes, with_languages
from dragoman.training.memory import device_memory
from dragoman.training.record import Record, read_run
from dragoman.training.task import task_of

Sets = Mapping[str, Sequence[TextFiles]]
"""The texts of ``train``, ``valid`` and ``test``."""

SUBWORDS_A_WORD = 1.5  # of languages with spaces, roughly; the others are counted by characters


class Diagnosis(NamedTuple):
    """What was found, worst first, and what it was found in."""

    title: str
    facts: dict[str, Any]
    findings: list[Finding]
    text: Examination | None = None
    run: Record | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"of": self.title, "facts": self.facts, "findings": [finding.as_json() for finding in self.findings]}

    def _repr_html_(self) -> str:
        """The page, in a notebook."""
        from dragoman.doctor.page import page  # which shows diagnoses, and so imports this module

        return framed(page(self), 600)

    def as_text(self) -> str:
        """For people."""
        found = report(self.findings) if self.findings else "no problems found"
        return "\n".join([self.title, *_fact_lines(self.facts), "", found])


def of_run(folder: Path) -> Diagnosis:
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
        best = max(run.validations, key=lambda v: (v[quality], -v["loss"]))  # as training chooses it
        facts |= {f"best_{quality}": round(best[quality], 2), "best_step": best["step"]}
    return Diagnosis(f"run {folder}", facts, ranked(diagnose(run)), run=run)


def of_text(
    config_path: Path | None, texts: Sets, overrides: Sequence[str], memory: float | None, quiet: bool
) -> Diagnosis:
    """Examine parallel text, what training and test text share, and which batch fits.

    Args:
        config_path: A configuration; its texts are examined where ``texts`` has none.
        texts: In any form that training takes.
        overrides: Such as ``["train.batch_tokens=8192"]``.
        memory: GiB; None takes what there is.

    Raises:
        ConfigError: There is nothing to examine, or the configuration is wrong.
        DataError: A file cannot be read.
    """
    given = with_overrides(read_yaml(config_path) if config_path is not None else {}, overrides)
    if given.get("task") == "parsing":
        raise ConfigError(f"{config_path}: trees are checked as they are read, by training; give a run, or text")
    sets = _sets(given, texts)
    train, where = sets["train"], str(config_path or "--set")
    config = None if config_path is None else _configuration(given, train, where)  # refused before anything is read
    parts = [Part(entry, examine(entry, Ticker(quiet))) for entry in train]
    found = parts[0].found if len(parts) == 1 else merged(parts)
    findings = [*found.findings, *(mixed(parts) if len(parts) > 1 else ())]
    for name in ("valid", "test"):
        for entry in sets.get(name, ()):
            of_set = overlap(found.digests, entry, name)
            several = len(sets[name]) > 1
            findings += (one._replace(text=name_of(entry) * several) for one in of_set)
    if config is None:
        chosen = choose_sizes(found.pairs, given.get("model"))
        config = _configuration(with_overrides(chosen, overrides), train, where)
    findings.append(_memory(config, found, memory))
    if len(parts) == 1:
        numbered = " (its pairs are numbered from 1)" if isinstance(train[0], OneFile) else ""
        return Diagnosis(parts[0].name + numbered, summary(found), ranked(findings), text=found)
    title = f"{f'data.train of {where}' if 'train' not in texts else 'training text'}, {len(parts)} texts"
    return Diagnosis(title, {**facts_of(parts), **summary(found)}, ranked(findings), text=found)


def text_named(
    words: Sequence[Path], columns: tuple[str, str] | None = None
) -> tuple[Path | None, tuple[TextFiles, ...]]:
    """The configuration and the texts among what was named, in that order.

    Args:
        columns: Of each table and memory.

    Raises:
        ConfigError: Something is neither.
    """
    config = words[0] if words and words[0].suffix.lower() in (".yaml", ".yml") else None
    return config, tuple(texts_named(words[1:] if config is not None else words, columns))


def _sets(given: Mapping[str, Any], texts: Sets) -> dict[str, tuple[TextFiles, ...]]:
    """The texts of each set that there is, with their languages.

    Raises:
        ConfigError: There is nothing to examine, or its languages are not known where they must be.
        DataError: A table or a memory cannot be read.
    """
    data = given.get("data")
    data = data if isinstance(data, dict) else {}
    langs = data.get("src_lang"), data.get("tgt_lang")
    sets = {name: tuple(some) for name, some in texts.items()}
    for name in ("train", "valid"):
        if name not in sets and data.get(name) is not None:
            entries = Config.from_mapping({"data": {"train": data[name]}}, "configuration").data.train
            sets[name] = each(entries)
    if "train" not in sets:
        raise ConfigError("nothing to examine: give a run, a configuration, or training text, as train.en train.de")
    if len(sets["train"]) > 1:  # which languages each has is decided as in training
        dumped = {name: [text.model_dump() for text in sets[name]] for name in ("train", "valid") if name in sets}
        said = Config.from_mapping({"data": {**dumped, "src_lang": langs[0], "tgt_lang": langs[1]}}).data
        known = with_languages(said)
        langs = known.src_lang, known.tgt_lang
        for name in dumped:
            sets[name] = each(getattr(known, name))
    return {name: tuple(_with_languages(entry, langs) for entry in entries) for name, entries in sets.items()}


def _with_languages(entry: TextFiles, langs: tuple[str | None, str | None]) -> TextFiles:
    src, tgt = entry.src_lang or langs[0], entry.tgt_lang or langs[1]
    if src is None or tgt is None:
        found = languages_of([entry])
        src, tgt = src or found[0], tgt or found[1]
    return entry.model_copy(update={"src_lang": src, "tgt_lang": tgt})


def _configuration(given: Mapping[str, Any], train: Sequence[TextFiles], where: str) -> Config:
    """The configuration that training on these files would have, as far as memory depends on it.

    Raises:
        ConfigError: It does not fit the schema, or entries differ in their languages and do not all name them.
    """
    texts = [text.model_dump(mode="json", exclude_defaults=True) for text in train]
    only = {name: one for name, one in texts[0].items() if name in ("src", "tgt", "file", "columns")}
    files = {"train": texts if len(texts) > 1 else only}
    steps = {"warmup_steps": 1} if where == "--set" else {}  # chosen from the length of training, which nobody said
    data, training = given.get("data", {}), given.get("train", {})
    sections = {
        **given,
        "data": {**data, **files} if isinstance(data, dict) else data,  # what is no section is refused as such
        "train": {**steps, **training} if isinstance(training, dict) else training,
    }
    return Config.from_mapping(sections, where)


def _memory(config: Config, found: Examination, memory: float | None) -> Finding:
    """Whether the batch fits in memory."""
    import torch

    from dragoman.device import resolve_device, resolve_precision

    if config.model.architecture != "transformer":
        what = f"how much a step needs is not known for model.architecture = {config.model.architecture}"
        return Finding("note", "memory", what, "train a few steps, and take a smaller train.batch_tokens if they fail")
    try:
        device = resolve_device(config.train.device)
        precision = resolve_precision(config.train.precision, device)
    except ConfigError as error:  # it is for another machine
        if memory is None:
            return Finding(
                "note", "memory", f"whether a batch fits is not known: {error}", "say how much: --memory GIB"
            )
        device, precision = torch.device("cpu"), "fp32" if config.train.precision == "fp32" else "bf16"
    where = {"precision": precision, "device": device.type}
    config = config.model_copy(update={"train": config.train.model_copy(update=where)})
    size = config.data.tokenizer.vocab_size
    sizes = ModelConfig(**config.model.model_dump(), src_vocab_size=size, tgt_vocab_size=size)
    length = min(config.data.max_tokens, _longest_subwords(config, found)) + 1
    if memory is not None:
        return batch_finding(config, sizes, length, memory * 2**30, "the given")
    name = "the GPU" if device.type == "cuda" else "this machine"
    return batch_finding(config, sizes, length, device_memory(device), name)


def _longest_subwords(config: Config, found: Examination) -> int:
    """About how many subwords the longest side has."""
    longest = 0.0
    for side in (0, 1):
        langs = {pair[side] for pair in config.data.pairs}
        factor = 1.0 if all(is_unspaced(lang) for lang in langs) else SUBWORDS_A_WORD
        longest = max(longest, factor * int(found.words[:, side].max(initial=0)))
    return max(1, round(longest))


def fact_rows(facts: Mapping[str, Any]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The facts as a table: names of its columns, and rows of a name and values."""
    columns: list[str] = []
    for value in facts.values():
        if isinstance(value, dict):
            columns += [name for name in value if name not in columns]
    rows = []
    for name, value in facts.items():
        values = (
            [value.get(column) for column in columns]
            if isinstance(value, dict)
            else [value, *[None] * (len(columns) - 1)]
        )
        rows.append(
            (
                name.replace("_", " ") if name.isidentifier() else name,
                ["" if number is None else f"{number:,}" for number in values],
            )
        )
    return columns or [""], rows


def _fact_lines(facts: Mapping[str, Any]) -> list[str]:
    """The same table in columns, for a terminal."""
    columns, rows = fact_rows(facts)
    table = [["", *columns], *([name, *values] for name, values in rows)]
    widths = [max(len(row[i]) for row in table if i < len(row)) for i in range(len(table[0]))]
    lines = [
        "  "
        + "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=False))
        )
        for row in table
    ]
    return [line.rstrip() for line in lines if line.strip()]
