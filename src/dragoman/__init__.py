"""dragoman: the Transformer of "Attention Is All You Need" as a complete, practical system.

The names below are the public ones. They are imported when first used, so that ``dragoman --help`` stays fast.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if sys.platform == "win32":
    raise ImportError("dragoman needs a Unix: it locks files as only those do. On Windows install it in WSL")

if TYPE_CHECKING:
    from dragoman.api import train as train
    from dragoman.assessment import compare as compare
    from dragoman.assessment import evaluate as evaluate
    from dragoman.assessment import stress as stress
    from dragoman.certificate import certify as certify
    from dragoman.config import Config as Config
    from dragoman.config import ModelConfig as ModelConfig
    from dragoman.decoding.sampling import Sampling as Sampling
    from dragoman.errors import BundleError as BundleError
    from dragoman.errors import ConfigError as ConfigError
    from dragoman.errors import DataError as DataError
    from dragoman.errors import DecodeError as DecodeError
    from dragoman.errors import DragomanError as DragomanError
    from dragoman.errors import ServeError as ServeError
    from dragoman.exports import export as export
    from dragoman.glossary import Glossary as Glossary
    from dragoman.model.transformer import Transformer as Transformer
    from dragoman.reading import Scored as Scored
    from dragoman.translator import Translation as Translation
    from dragoman.translator import Translator as Translator

__version__ = "0.1.0"

_HOME = {
    "BundleError": "errors",
    "Config": "config",
    "ConfigError": "errors",
    "DataError": "errors",
    "DecodeError": "errors",
    "DragomanError": "errors",
    "Glossary": "glossary",
    "ModelConfig": "config",
    "Sampling": "decoding.sampling",
    "Scored": "reading",
    "ServeError": "errors",
    "Transformer": "model.transformer",
    "Translation": "translator",
    "Translator": "translator",
    "certify": "certificate",
    "compare": "assessment",
    "evaluate": "assessment",
    "export": "exports",
    "stress": "assessment",
    "train": "api",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}; its public names are {', '.join(__all__)}")
    value = getattr(importlib.import_module(f"dragoman.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
