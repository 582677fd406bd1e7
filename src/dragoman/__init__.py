"""dragoman: the Transformer of "Attention Is All You Need" as a complete, practical system.

    train              two text files in, a trained translator out
    Translator         Translator.load("runs/first").translate("A dog runs.")
    Translation        a translated line: text, score, confidence, notes, alignment
    explain            a translation with its attention weights and candidates, as arrays or a page
    evaluate, compare  BLEU, chrF and TER of a test set; which of two systems is better
    stress             how much worse a test set is translated with typing errors and lower case
    augment            more training text, translated by trained models
    distill            a small, fast student of one or several teachers
    export, certify    a model in another toolkit's format, and how the two compare
    import_model       a model of another toolkit, made into a run
    translate_document a document, or a folder of documents, with its formatting kept
    translate_folder   a folder of text on a Ray cluster
    Scored             a given translation with its probability, from Translator.score
    Glossary           terms and their translations
    TrainOptions, TranslateOptions  every option; most functions take them by name too
    Events, Note       callbacks for warnings and progress; a warning
    Config             a whole run: task, model, data, train, decode
    ModelConfig, Transformer        the model alone
    DragomanError      every error: ConfigError, DataError, BundleError, DecodeError, ServeError

These are the public names. They are imported when first used, so that ``dragoman --help`` stays fast.
``help(dragoman.train)`` shows one of them in full.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if sys.platform == "win32":
    raise ImportError("dragoman needs a Unix: it locks files as only those do. On Windows install it in WSL")

if TYPE_CHECKING:
    from dragoman.bulk.translate import translate_folder as translate_folder
    from dragoman.config import Config as Config
    from dragoman.config import ModelConfig as ModelConfig
    from dragoman.distillation.augment import augment as augment
    from dragoman.distillation.distill import distill as distill
    from dragoman.documents.translate import translate_document as translate_document
    from dragoman.errors import BundleError as BundleError
    from dragoman.errors import ConfigError as ConfigError
    from dragoman.errors import DataError as DataError
    from dragoman.errors import DecodeError as DecodeError
    from dragoman.errors import DragomanError as DragomanError
    from dragoman.errors import ServeError as ServeError
    from dragoman.evaluation.certify import certify as certify
    from dragoman.evaluation.evaluate import compare as compare
    from dragoman.evaluation.evaluate import evaluate as evaluate
    from dragoman.evaluation.evaluate import stress as stress
    from dragoman.explanation.explain import explain as explain
    from dragoman.model.transformer import Transformer as Transformer
    from dragoman.toolkits.export import export as export
    from dragoman.toolkits.import_ import import_model as import_model
    from dragoman.training.options import TrainOptions as TrainOptions
    from dragoman.training.run import train as train
    from dragoman.translation.assemble import Translation as Translation
    from dragoman.translation.keeping.glossary import Glossary as Glossary
    from dragoman.translation.notes import Events as Events
    from dragoman.translation.notes import Note as Note
    from dragoman.translation.options import TranslateOptions as TranslateOptions
    from dragoman.translation.scoring import Scored as Scored
    from dragoman.translation.translator import Translator as Translator

__version__ = "0.1.0"

_HOME = {
    "BundleError": "errors",
    "Config": "config",
    "ConfigError": "errors",
    "DataError": "errors",
    "DecodeError": "errors",
    "DragomanError": "errors",
    "Glossary": "translation.keeping.glossary",
    "ModelConfig": "config",
    "Events": "translation.notes",
    "Note": "translation.notes",
    "Scored": "translation.scoring",
    "ServeError": "errors",
    "TrainOptions": "training.options",
    "TranslateOptions": "translation.options",
    "Transformer": "model.transformer",
    "Translation": "translation.assemble",
    "Translator": "translation.translator",
    "augment": "distillation.augment",
    "certify": "evaluation.certify",
    "compare": "evaluation.evaluate",
    "distill": "distillation.distill",
    "evaluate": "evaluation.evaluate",
    "explain": "explanation.explain",
    "import_model": "toolkits.import_",
    "export": "toolkits.export",
    "stress": "evaluation.evaluate",
    "train": "training.run",
    "translate_document": "documents.translate",
    "translate_folder": "bulk.translate",
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
