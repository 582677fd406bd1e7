"""Training text given in memory: lists, columns of tables or pairs, written into the run so that it can be resumed.

config, given = GivenText.of(config, tgt, changes)    # takes what is text out of the arguments of ``train``
options = TrainOptions.of(options, changes | given.paths(run))    # src: RUN/text/train.en, tgt: RUN/text/train.de
with given.written(run): ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from dragoman.arguments import as_list, columns_of, is_listable, only_column, refuse_entries
from dragoman.bundle import find_bundle
from dragoman.config import Config, read_yaml, with_overrides
from dragoman.data.tables import columns_by_headings
from dragoman.data.tokenizer import lone_surrogate
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.files import explained, write_text
from dragoman.languages.codes import language_of
from dragoman.training.options import TableOptions, TrainOptions

FOLDER = "text"
"""Folder of a run that holds text which was given in memory."""

_SIDES = {"src": "train", "tgt": "train", "valid_src": "valid", "valid_tgt": "valid"}
"""Options of ``train`` that take text, and the beginning of the name of its file."""


@dataclass(frozen=True)
class GivenText:
    """Sides of training and validation text that were given in memory, by option, and the names of their files."""

    sides: dict[str, list[str]]
    names: dict[str, str]
    columns: tuple[str, str] | None = None  # of a table, which nobody has named: source and target

    @classmethod
    def of(
        cls, config: Any, tgt: Any, changes: dict[str, Any], options: TrainOptions | None = None,
        run: Path | None = None,
    ) -> tuple[Any, GivenText]:  # fmt: skip
        """Take text in memory out of the arguments of ``train``; return what is left of ``config``, and the text.

        Two positional arguments are source and target; in ``changes`` they become the options ``src`` and ``tgt``.

        Args:
            config, tgt, changes, options: As for ``train``.
            run: The folder to train in, if it was named.

        Raises:
            ConfigError: The target is named twice, or given without a source.
            DataError: A text is no text, or the sides differ in length.
        """
        if tgt is not None:
            if config is None:  # by keyword alone
                changes["tgt"] = tgt
            elif "src" in changes:
                raise ConfigError("src is given twice: as the first argument and by name")
            else:
                changes |= {"src": config, "tgt": tgt}
            return None, cls._taken(changes)
        if isinstance(config, Config):  # which is iterable
            return config, cls._taken(changes)
        if is_listable(config) and not columns_of(config) and not isinstance(config, Sequence):
            config = as_list(config)
        if columns_of(config) or (is_listable(config) and config and isinstance(config[0], tuple | list)):
            named = _columns(changes)
            columns = named or _columns_of_languages(config, changes, options, run)
            changes["src"], changes["tgt"] = _two_sides(config, columns)
            is_chosen = named is None and columns_of(config)
            return None, replace(cls._taken(changes), columns=columns if is_chosen else None)
        return config, cls._taken(changes)

    @classmethod
    def _taken(cls, changes: dict[str, Any]) -> GivenText:
        """Take the sides that are text in memory out of ``changes``."""
        values = {option: changes.pop(option) for option in _SIDES if is_listable(changes.get(option))}
        names = {option: f"{_SIDES[option]}.{_ending(option, value)}" for option, value in values.items()}
        given = cls({option: _texts(option, value) for option, value in values.items()}, names)
        for src, tgt_name in (("src", "tgt"), ("valid_src", "valid_tgt")):
            given._check_lengths(src, tgt_name)
        return given

    def _check_lengths(self, src: str, tgt: str) -> None:
        if src in self.sides and tgt in self.sides and len(self.sides[src]) != len(self.sides[tgt]):
            raise DataError(
                f"{src} has {len(self.sides[src]):,} texts but {tgt} has {len(self.sides[tgt]):,}: text i of one must "
                "translate text i of the other"
            )

    def paths(self, run: Path) -> dict[str, Path]:
        """Return the options of ``train`` that name the files of this text in the folder of a run."""
        paths = {option: run / FOLDER / name for option, name in self.names.items()}
        if len(set(paths.values())) == len(paths):
            return paths
        return {option: run / FOLDER / f"{_SIDES[option]}.{option.removeprefix('valid_')}" for option in paths}

    @contextmanager
    def written(self, run: Path) -> Iterator[None]:
        """Write the text into the folder of a run; if the body fails before the run has begun, remove what was written.

        The caller holds the folder of a new run: two trainings would write over each other's text.

        Raises:
            DataError: The run was begun with other text, or the folder has a file of that name with other text.
            DragomanError: It cannot be written there.
        """
        contents = {
            path: "".join(f"{text}\n" for text in self.sides[option]) for option, path in self.paths(run).items()
        }
        self._refuse_other_files(run, contents)
        new_files = [path for path in contents if not path.exists()]
        new_folders = [folder for folder in (run / FOLDER, run, *run.parents) if not folder.exists()]
        try:
            for path in new_files:
                with explained(path):
                    path.parent.mkdir(parents=True, exist_ok=True)
                write_text(path, contents[path])
            yield
        except BaseException:
            if self.sides and not _has_begun(run):
                with suppress(OSError):  # a folder holds more
                    for path in new_files:
                        path.unlink(missing_ok=True)
                    for folder in new_folders:
                        folder.rmdir()
            raise

    def _refuse_other_files(self, run: Path, contents: dict[Path, str]) -> None:
        """Check that no file with other text stands where the text is to be written.

        Raises:
            DataError: It does.
        """
        for option, path in self.paths(run).items():
            with explained(path):
                if not path.exists() or path.read_bytes() == contents[path].encode():
                    continue
            if _has_begun(run):
                raise DataError(f"{option} differs from {path}, the text that the run was begun with: name another out")
            raise DataError(
                f"{path}: a file with other text than {option} would be overwritten; delete it if a training left "
                "it, or name another out"
            )


def _has_begun(run: Path) -> bool:
    """True if the folder holds the configuration of a run."""
    return (run / "config.yaml").exists()


def _texts(option: str, value: Any) -> list[str]:
    """Return texts as a list; refuse what cannot be a line."""
    texts = only_column(option, value) if columns_of(value) else as_list(value)
    refuse_entries(option, texts)
    if not texts:
        raise DataError(f"{option} has no texts: give at least one")
    for number, text in enumerate(texts, 1):
        if "\n" in text:
            raise DataError(f"{option}: number {number:,} has a line break: replace it by a space, or split the text")
        if lone_surrogate(text) is not None:
            raise DataError(f"{option}: number {number:,} has half of a surrogate pair: replace it")
    return texts


def _columns(changes: dict[str, Any]) -> tuple[str, str] | None:
    """Take the two columns out of the arguments of ``train``.

    Raises:
        ConfigError: They are not two.
    """
    return TableOptions(columns=changes.pop("columns", None)).two_columns


def _columns_of_languages(
    table: Any, changes: dict[str, Any], options: TrainOptions | None, run: Path | None
) -> tuple[str, str] | None:
    """Return the columns that the names of the languages tell, else the only two; None if there are others.

    The languages are those of the settings, else of the run that is resumed or fine-tuned.
    """
    names = list(columns_of(table))
    given: dict[str, Any] = {name: changes[name] for name in ("overrides", "resume", "from_run") if name in changes}
    options = TrainOptions.of(options, given)
    settings: dict[str, Any] = {}
    with suppress(DragomanError):  # whatever is wrong is refused where it is used
        if options.resume and run is not None:
            settings = read_yaml(run / "config.yaml")
        elif options.from_run is not None:
            settings = read_yaml(find_bundle(Path(options.from_run)) / "config.yaml")
        settings = with_overrides(settings, options.overrides)
    data = settings.get("data")
    src, tgt = (data.get(side) if isinstance(data, dict) else None for side in ("src_lang", "tgt_lang"))
    places = columns_by_headings(names, (src and str(src), tgt and str(tgt))) or ((0, 1) if len(names) == 2 else None)
    return None if places is None else (names[places[0]], names[places[1]])


def _two_sides(value: Any, columns: tuple[str, str] | None) -> tuple[Any, Any]:
    """Return source and target of a table or a list of pairs.

    Raises:
        ConfigError: The columns do not exist, or are more than two and none is named.
        DataError: An entry is no pair of texts.
    """
    known = columns_of(value)
    if known:
        names = columns or tuple(known)
        if len(names) != 2 or not set(names) <= set(known):
            got = None if columns is None else ",".join(columns)
            by_language = " or by the headings that data.src_lang and data.tgt_lang name," if columns is None else ""
            raise ConfigError(
                f"columns must be two of {', '.join(known)}, as columns='en,de',{by_language} got {got!r}"
            )
        src, tgt = (_Named(as_list(value[known[name]]), name) for name in names)
        return src, tgt
    pairs = list(value)
    for number, pair in enumerate(pairs, 1):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise DataError(
                f"number {number:,} of the training text must be a pair of texts (source, target), got "
                f"{type(pair).__name__}; give two lists as train(src, tgt)"
            )
    return [src for src, _ in pairs], [tgt for _, tgt in pairs]


class _Named(list[Any]):
    """Values of a column, with its name."""

    def __init__(self, values: Any, name: str) -> None:
        super().__init__(values)
        self.name = name


def _ending(option: str, value: Any) -> str:
    """Return the ending of a file's name: the name of a column if that is a language, else the side."""
    name = getattr(value, "name", None)
    lang = language_of(PurePath(f"text.{name}")) if isinstance(name, str) and "/" not in name else None
    return lang or option.removeprefix("valid_")
