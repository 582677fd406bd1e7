"""Declaration of a toolkit: another program that runs translation models, or our own search.

    TOOLKIT = Toolkit(name="mine", writer=lazily(__name__, "write"))    # in toolkits/mine/__init__.py

A toolkit may write models (``Writer``), read them (``Reader``), be compared with our model (``Comparer``) and be an
engine that users choose (``engine.Engine``). Nothing here imports torch: the command line reads the declarations
for its help.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.errors import ConfigError, not_installed

if TYPE_CHECKING:
    import torch

    from dragoman.bundle import Bundle
    from dragoman.config import DecodeConfig, ModelConfig
    from dragoman.toolkits.engine import Engine, ExportedSearcher
    from dragoman.toolkits.reading import Imported


class Writer(Protocol):
    """Module that writes models in one foreign format."""

    TITLE: str
    """Name of the format in messages."""
    QUANTIZATIONS: tuple[str, ...]
    """Number formats of the weights; the first, ``float32``, leaves them as they are."""
    PACKAGES: tuple[str, ...]
    """Packages that writing needs; each is installed and imported by the same name."""
    FILE: str
    """Suffix of an export that is one file, such as ``.html``; "" if it is a folder."""

    def why_not(self, config: ModelConfig) -> str:
        """Return the reason why the format cannot hold a model exactly, with the setting's value; "" if it can."""
        ...

    def write(self, bundle: Bundle, folder: Path, quantization: str) -> None:
        """Write the model and its subwords into the empty ``folder``.

        Raises:
            BundleError: The model is damaged.
            ConfigError: The format cannot hold something outside the configuration, such as the subwords.
            OSError: A file cannot be written.
        """
        ...


class Reader(Protocol):
    """Module that reads models of one foreign format."""

    def read(
        self, source: Path, name: str, texts: Sequence[str] | None, languages: tuple[str | None, str | None]
    ) -> Imported:
        """Read a model without writing anything.

        Args:
            source: The folder or file.
            name: Name of the model in messages.
            texts: If given, subwords that none of these texts uses are removed.
            languages: Codes of source and target; None: those that the model names.

        Raises:
            BundleError: A file is missing or damaged, or the model is of a kind that cannot be held exactly.
        """
        ...


class Comparer(Protocol):
    """Module that loads exports of its format, so that a certificate can compare them with our model."""

    def check_installed(self, device: str) -> None:
        """Check that exports can be compared on this device (``cpu``, ``cuda``).

        Raises:
            ConfigError: A package is missing, or it cannot use the device.
        """
        ...

    def open_export(
        self, export: Path, quantization: str, bundle: Bundle, device: torch.device
    ) -> tuple[ExportedSearcher, str]:
        """Load an export of ``bundle``, a folder or a file; return its searcher and the precision that it computes in.

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
    """Parts of one toolkit; modules and classes come as functions, so that they are imported when needed."""

    name: str
    """Name of its format in ``--format``."""
    writer: Callable[[], Writer] | None = None
    beyond_exact: str = ""
    """What may differ where the writer holds a model exactly; "" if nothing does."""
    reader: Callable[[], Reader] | None = None
    reads: str = ""
    """Description of the input of the reader, such as ``a folder of CTranslate2 (model.bin)``."""
    recognises: Callable[[Path, Collection[str]], bool] = recognises_nothing
    """True if the reader reads a folder with these file names, or a zip file with these members."""
    download: Callable[[], Callable[[str, str | None], tuple[Path, str]]] | None = None
    """Imports a function that downloads a model by name and revision; it returns the folder, and name with commit."""
    comparer: Callable[[], Comparer] | None = None
    engine: str = ""
    """Name of its search in ``--engine``; "" if users cannot choose it."""
    engine_class: Callable[[], type[Engine]] | None = None
    one_file_facts: Callable[[], Callable[[Path], dict[str, Any]]] | None = None
    """Imports a function that reads from a one-file export the facts that the manifest of a folder holds."""
    card: Callable[[], Callable[[Bundle, str, str], str]] | None = None
    """Imports a function that makes a model card from bundle, quantization and certificate in Markdown."""


def import_package(name: str, purpose: str) -> Any:
    """Import an optional package.

    Raises:
        ConfigError: It is not installed; the message says how to install it, and that ``purpose`` needs it.
    """
    try:
        return import_module(name)
    except ImportError:
        raise ConfigError(not_installed(purpose, name)) from None


def lazily(package: str, module: str) -> Callable[[], Any]:
    """Return a function that imports a module of a package, or takes a name from it (``search:CTranslate2``)."""
    file, _, name = module.partition(":")

    def load() -> Any:
        imported = import_module(f"{package}.{file}")
        return getattr(imported, name) if name else imported

    return load
