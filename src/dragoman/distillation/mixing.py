"""A configuration that trains on synthetic data together with the text of the run that translated it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from dragoman.config import Config, OneFile, TextFiles, each
from dragoman.data.tables import table_columns
from dragoman.data.text_names import form_of
from dragoman.data.tmx import tmx_varieties
from dragoman.distillation.direction import Direction
from dragoman.distillation.options import AugmentOptions
from dragoman.distillation.own_text import OwnText, own_text
from dragoman.errors import as_command

Entry = dict[str, Any]


class Mixed(NamedTuple):
    """Text of a configuration file, and its parts."""

    text: str
    entries: tuple[Entry, ...]  # of the synthetic data, in ``data.train``
    remarks: tuple[str, ...]  # sentences on data that the user must add, and on text that was taken by its name alone


def configuration(directions: Sequence[Direction], config_path: Path, options: AugmentOptions) -> Mixed:
    """Return the configuration that trains on synthetic data and on the text of the run that translated it.

    The settings are those of the forward model; without one, those of the back-translating model with source and target
    exchanged.

    Raises:
        ConfigError: A tag is invalid, or the configuration does not fit the schema.
    """
    direction = directions[0]
    config, turned = direction.translator.config, direction.name == "back"
    own_train, own_valid = (
        own_text(direction.runs[0], () if texts is None else each(texts))
        for texts in (config.data.train, config.data.valid)
    )
    own, valid = (
        tuple(map(turned_round, texts)) if turned else texts for texts in (own_train.texts, own_valid.texts)
    )  # fmt: skip
    named = len(config.data.pairs) > 1 or any(text.src_lang or text.tgt_lang for text in (*own, *valid))
    entries = tuple(_entry(direction, options, named) for direction in directions)
    settings: dict[str, Any] = config.model_dump(mode="json", exclude_defaults=True)
    replaced = ("train", "valid", "src_lang", "tgt_lang")
    data = {key: value for key, value in settings["data"].items() if key not in replaced}
    common = (config.data.src_lang, config.data.tgt_lang)[:: -1 if turned else 1] if named else direction.langs
    data |= {name: lang for name, lang in zip(("src_lang", "tgt_lang"), common, strict=True) if lang is not None}
    data["train"] = [*(text.model_dump(mode="json", exclude_defaults=True) for text in own), *entries]
    if valid:
        data["valid"] = [text.model_dump(mode="json", exclude_defaults=True) for text in valid]
    training = {name: value for name, value in settings.get("train", {}).items() if name not in ("device", "precision")}
    settings |= {"data": data, "train": training}
    Config.from_mapping(settings, "the configuration of the synthetic data")
    remarks = _remarks(direction.runs[0], own_train, own_valid)
    header = [
        f"Settings of {direction.runs[0]}{', source and target exchanged' * turned}, with synthetic data of augment.",
        f"Train on it:  {as_command('dragoman', 'train', config_path, '--out', 'runs/NAME')}",
        *remarks,
    ]
    return Mixed("".join(f"# {line}\n" for line in header) + dumped(settings), entries, remarks)


def dumped(settings: dict[str, Any]) -> str:
    """Return settings as YAML, one entry a line."""
    return yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, default_flow_style=None, width=1000)


def _remarks(run: Path | str, train: OwnText, valid: OwnText) -> tuple[str, ...]:
    """Return sentences on the text of a run: what is not there or has changed, and what was not compared."""
    remarks = [
        f"{text.taken}: taken for the text of {run} by name, as a bundle does not note the content"
        for text in (train, valid)
        if text.taken
    ]
    if not train.texts:
        why = "is not there" if train.changed is None else f"has changed ({train.changed})"
        remarks.append(f"the text of {run} {why}: add your own to data.train")
    if not valid.texts:
        why = "" if valid.changed is None else f", as that of {run} has changed ({valid.changed})"
        remarks.append(
            f"no validation text{why}: give your own as data.valid (held-out lines may have twins in synthetic data)"
        )
    return tuple(remarks)


def turned_round(text: TextFiles) -> TextFiles:
    """Return a text with source and target exchanged, without its tag, which belongs to the former source."""
    langs = {"src_lang": text.tgt_lang, "tgt_lang": text.src_lang}
    if not isinstance(text, OneFile):
        return text.model_copy(update={"src": text.tgt, "tgt": text.src, "tag": None, **langs})
    columns = text.columns or (tmx_varieties if form_of(text.file) == ".tmx" else table_columns)(text.file)
    return text.model_copy(update={"columns": columns[::-1], "tag": None, **langs})


def _entry(direction: Direction, options: AugmentOptions, named: bool) -> Entry:
    """Return the entry of ``data.train`` for the synthetic data of one direction."""
    src, tgt = direction.sides
    entry: Entry = {"src": f"{src}", "tgt": f"{tgt}"}
    tag = options.tag if direction.name == "back" else options.forward_tag
    entry |= {"tag": tag} if tag else {}
    entry |= {"weight": options.weight} if options.weight != 1 else {}
    langs = zip(("src_lang", "tgt_lang"), direction.langs, strict=True)
    return entry | ({name: lang for name, lang in langs if lang} if named else {})
