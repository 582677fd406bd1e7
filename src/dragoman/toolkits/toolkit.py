"""A toolkit: another program that runs such models, or our own search; what its folder declares.

    TOOLKIT = Toolkit(name="mine", writer=lazily(__name__, "write"))    # in toolkits/mine/__init__.py

A toolkit may write models (``Writer``), read them (``Reader``), be compared with ours (``Comparer``) and be an engine
that users choose (``engine.Engine``). Nothing here imports torch: the command line reads the declarations for its help.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

    from dragoman.bundle import Bundle
    from dragoman.config import DecodeConfig, ModelConfig
    from dragoman.toolkits.engine import Engine, ExportedSearcher
    from dragoman.toolkits.reading import Imported


class Writer(Protocol):
    """A module that writes models in one foreign format."""

    TITLE: str
    """Name of the format in messages."""
    QUANTIZATIONS: tuple[str, ...]
    """Number formats of the weights; the first, ``float32``, leaves them as they are."""
    PACKAGES: tuple[str, ...]
    """Packages that writing needs, by the names that they are imported and installed by."""
    FILE: str
    """Suffix of an export that is one file, such as ``.html``; "" if an export is a folder."""

    def why_not(self, config: ModelConfig) -> str:
        """Return what of a model the format cannot hold exactly, with the setting's value; "" if it holds all of it."""
        ...

    def write(self, bundle: Bundle, folder: Path, quantization: str) -> None:
        """Write the model and its subwords into ``folder``, which exists and is empty.

        Raises:
            BundleError: The model is damaged.
            ConfigError: The format cannot hold what is not in the configuration, such as the subwords.
            OSError: A file cannot be written.
        """
        ...


class Reader(Protocol):
    """A module that reads models of one foreign format."""

    def read(
        self, source: Path, name: str, texts: Sequence[str] | None, languages: tuple[str | None, str | None]
    ) -> Imported:
        """Read a model; nothing is written.

        Args:
            source: The folder or file.
            name: Name of the model in messages.
            texts: If given, subwords that none of these texts has are left out.
            languages: Codes of source and target; None: what the model says.

        Raises:
            BundleError: A file is missing or damaged, or the model is of a kind that cannot be held exactly.
        """
        ...


class Comparer(Protocol):
    """A module that loads exports of its format, so that a certificate can compare them with our model."""

    def check_installed(self, device: str) -> None:
        """Refuse to compare on this device (``cpu``, ``cuda``) before anything is written.

        Raises:
            ConfigError: A package is missing, or it cannot use the device.
        """
        ...

    def open_export(
        self, export: Path, quantization: str, bundle: Bundle, device: torch.device
    ) -> tuple[ExportedSearcher, str]:
        """Load an export of ``bundle``, a folder or a file; return it and the precision that it computes in.

        Raises:
            ConfigError: It cannot be loaded here.
        """
        ...

    def program_version(self) -> tuple[str, str]:
        """Return name and version of the program that searches."""
        ...

    def why_different(self, decode: DecodeConfig) -> list[str]:
        """Return the reasons why the same weights may give other translations here (B) than in our search (A)."""
        ...


def recognises_nothing(source: Path, names: Collection[str]) -> bool:
    """Return False: no folder or file is a model of a toolkit without a reader."""
    return False


@dataclass(frozen=True, kw_only=True)
class Toolkit:
    """What one toolkit can do. Modules and classes are given as functions, so that they are imported when needed."""

    name: str
    """What ``--to`` calls its format."""
    writer: Callable[[], Writer] | None = None
    reader: Callable[[], Reader] | None = None
    reads: str = ""
    """What the reader reads, in words for the user, such as ``a folder of CTranslate2 (model.bin)``."""
    recognises: Callable[[Path, Collection[str]], bool] = recognises_nothing
    """True if the reader reads a folder with these file names, or a zip file with these members."""
    download: Callable[[], Callable[[str, str | None], tuple[Path, str]]] | None = None
    """Downloads a model by name and revision; returns its folder, and its name with the commit."""
    comparer: Callable[[], Comparer] | None = None
    engine: str = ""
    """What ``--engine`` calls its search; "" if users cannot choose it."""
    engine_class: Callable[[], type[Engine]] | None = None
    one_file_facts: Callable[[], Callable[[Path], dict[str, Any]]] | None = None
    """Reads what an export that is one file says of itself, as the manifest of a folder would."""
    card: Callable[[], Callable[[Bundle, str, str], str]] | None = None
    """Makes the model card of an export from the bundle, the quantization and its certificate in Markdown."""


def lazily(package: str, module: str) -> Callable[[], Any]:
    """Return a function that imports a module of a package, or takes a name from it (``search:CTranslate2``)."""
    file, _, name = module.partition(":")

    def load() -> Any:
        imported = import_module(f"{package}.{file}")
        return getattr(imported, name) if name else imported

    return load
