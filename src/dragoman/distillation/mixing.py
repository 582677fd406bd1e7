"""A configuration for made text: the settings of the run that translated it, with its own text beside."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from dragoman.config import Config, OneFile, TextFiles, each
from dragoman.data.texts import form_of, paths_of
from dragoman.data.tmx import tmx_languages
from dragoman.distillation.direction import Direction
from dragoman.distillation.options import AugmentOptions

Entry = dict[str, Any]


class Mixed(NamedTuple):
    """A configuration file."""

    text: str
    made: tuple[Entry, ...]  # the entries of made text in it
    missing: tuple[str, ...]  # what it lacks, in words


def configuration(directions: Sequence[Direction], config_path: Path, options: AugmentOptions) -> Mixed:
    """The configuration that trains on made text, beside the text of the run that made it.

    The settings are those of the model that translates forward; or of the other one, and its text is turned round.

    Raises:
        ConfigError: A tag is none, or what comes out does not fit the schema.
    """
    direction = directions[0]
    config, turned = direction.translator.config, direction.name == "back"
    own, valid = (_there(texts, turned) for texts in (config.data.train, config.data.valid))
    named = len(config.data.pairs) > 1 or any(text.src_lang or text.tgt_lang for text in (*own, *valid))
    made = tuple(_entry(one, options, named) for one in directions)
    given: dict[str, Any] = config.model_dump(mode="json", exclude_defaults=True)
    data = {key: value for key, value in given["data"].items() if key not in ("train", "valid", "src_lang", "tgt_lang")}
    common = (config.data.src_lang, config.data.tgt_lang)[:: -1 if turned else 1] if named else direction.langs
    data |= {name: lang for name, lang in zip(("src_lang", "tgt_lang"), common, strict=True) if lang is not None}
    data["train"] = [*(text.model_dump(mode="json", exclude_defaults=True) for text in own), *made]
    if valid:
        data["valid"] = [text.model_dump(mode="json", exclude_defaults=True) for text in valid]
    training = {name: value for name, value in given.get("train", {}).items() if name not in ("device", "precision")}
    given |= {"data": data, "train": training}
    Config.from_mapping(given, "the configuration of the made text")
    missing = []
    if not own:
        missing.append(f"the text of {direction.runs[0]} is not there: add your own to data.train")
    if not valid:
        missing.append(
            "no validation text: give your own as data.valid, for what is held out may have twins in made text"
        )
    said = [
        f"Settings of {direction.runs[0]}{', turned round' * turned}, and what `dragoman augment` made of more text.",
        f"Train on it:  dragoman train {shlex.quote(str(config_path))} --out runs/NAME",
        *missing,
    ]
    return Mixed("".join(f"# {line}\n" for line in said) + dumped(given), made, tuple(missing))


def dumped(given: dict[str, Any]) -> str:
    """YAML with an entry a line."""
    return yaml.safe_dump(given, sort_keys=False, allow_unicode=True, default_flow_style=None, width=1000)


def _there(texts: TextFiles | tuple[TextFiles, ...] | None, turned: bool) -> tuple[TextFiles, ...]:
    """The texts of a setting, if all their files are there; with source and target exchanged where it is ``turned``."""
    every = () if texts is None else each(texts)
    if not all(path.is_file() for path in paths_of(every)):
        return ()
    return tuple(map(turned_round, every)) if turned else every


def turned_round(text: TextFiles) -> TextFiles:
    """A text with source and target exchanged, for a model of the other direction; a tag was of the other source."""
    langs = {"src_lang": text.tgt_lang, "tgt_lang": text.src_lang}
    if not isinstance(text, OneFile):
        return text.model_copy(update={"src": text.tgt, "tgt": text.src, "tag": None, **langs})
    columns = text.columns or (tmx_languages(text.file) if form_of(text.file) == ".tmx" else ("1", "2"))
    return text.model_copy(update={"columns": columns[::-1], "tag": None, **langs})


def _entry(direction: Direction, options: AugmentOptions, named: bool) -> Entry:
    """What ``data.train`` takes of the text of one direction."""
    src, tgt = direction.sides
    entry: Entry = {"src": str(src), "tgt": str(tgt)}
    tag = options.tag if direction.name == "back" else options.forward_tag
    entry |= {"tag": tag} if tag else {}
    entry |= {"weight": options.weight} if options.weight != 1 else {}
    langs = zip(("src_lang", "tgt_lang"), direction.langs, strict=True)
    return entry | ({name: lang for name, lang in langs if lang} if named else {})
