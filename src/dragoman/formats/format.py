"""What a format is: one Protocol for all that a model can be written in."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from dragoman.bundle import Bundle
from dragoman.config import ModelConfig
from dragoman.errors import ConfigError
from dragoman.formats import FORMATS


class Format(Protocol):
    """A module of this package that writes models in one foreign format."""

    def check(self, config: ModelConfig, quantization: str) -> None:
        """Refuse what ``write`` would, before there is a folder.

        Raises:
            ConfigError: The quantization is unknown, the format cannot express the model, or a package is missing.
        """
        ...

    def write(self, bundle: Bundle, folder: Path, quantization: str) -> None:
        """Write the model and its subwords into ``folder``, which is there and empty.

        Raises:
            BundleError: The model is damaged.
            ConfigError: As ``check``.
            OSError: A file cannot be written.
        """
        ...


def format_of(name: str) -> Format:
    """The format of this name.

    Raises:
        ConfigError: There is none.
    """
    if name not in FORMATS:
        raise ConfigError(f"--to {name!r} is unknown: use {' or '.join(FORMATS)}")
    return cast(Format, import_module(f"dragoman.formats.{name}"))
