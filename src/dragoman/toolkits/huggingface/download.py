"""Download a model of Hugging Face by its name, or take it from the cache of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman.errors import BundleError, ConfigError, not_installed
from dragoman.toolkits.ctranslate2 import read as ctranslate2
from dragoman.toolkits.headers import try_headers
from dragoman.toolkits.huggingface import read as transformers

SMALL = ("*.json", "*.spm", "*.spm.model", "sentencepiece.model", "*_vocabulary.txt")
"""Patterns of the files without weights, which show whether a model can be imported."""
WEIGHTS = ("model*.safetensors", "model.bin")
PICKLED = "pytorch_model*.bin"
"""Weights that are downloaded only if there are no others."""


def download(name: str, revision: str | None) -> tuple[Path, str]:
    """Download a model of transformers or CTranslate2 from Hugging Face, or take it from the cache.

    The small files come first: a model that they refuse is refused before gigabytes are downloaded.

    Args:
        revision: Branch, tag or commit; None: the newest.

    Returns:
        The folder, and ``NAME@COMMIT``.

    Raises:
        BundleError: The model is of a kind that cannot be imported.
        ConfigError: There is no such folder or model, no network, or the package is missing.
        DataError: The small files exceed what parsing them may take.
    """
    if name.count("/") != 1 or name.startswith((".", "/")):
        raise ConfigError(f"{name}: is neither a folder nor the name of a model such as Helsinki-NLP/opus-mt-en-de")
    folder = _fetched(name, revision, SMALL)
    try_headers(folder)
    _refuse_by_small_files(folder, name)
    commit = folder.name  # so the cache names it; its branch may have moved on meanwhile
    folder = _fetched(name, commit, (*SMALL, *WEIGHTS))
    weights = ("model.safetensors", transformers.index_of("model.safetensors"), "model.bin")
    if not any((folder / file).exists() for file in weights):
        folder = _fetched(name, commit, (*SMALL, *WEIGHTS, PICKLED))
    return folder, f"{name}@{commit}"


def _refuse_by_small_files(folder: Path, name: str) -> None:
    if any(folder.glob("*_vocabulary.*")):
        ctranslate2.refuse_by_small_files(folder)
    elif (folder / "config.json").is_file():
        transformers.small_files(folder)
    else:
        raise BundleError(f"{name}: has no config.json, and no vocabulary of CTranslate2; it cannot be imported")


def _fetched(name: str, revision: str | None, patterns: Sequence[str]) -> Path:
    """Download the files of some patterns, unless the cache has them; return their folder."""
    try:
        from huggingface_hub import errors, snapshot_download
    except ImportError:
        raise ConfigError(not_installed(f"downloading {name}", "huggingface_hub")) from None
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=list(patterns)))
    except errors.LocalEntryNotFoundError:
        raise ConfigError(
            f"{name}: is not in the cache of this machine, and Hugging Face cannot be reached from here; give a folder"
        ) from None
    except errors.RevisionNotFoundError:
        raise ConfigError(f"{name}: has no revision {revision!r}; give a branch, tag or commit that it has") from None
    except errors.RepositoryNotFoundError:
        raise ConfigError(
            f"{name}: Hugging Face has no such model, or it is private (then log in with `hf auth login`)"
        ) from None
    except Exception as error:  # its own errors and those of several network packages
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"{name}: cannot be downloaded ({type(error).__name__}: {reason[:200]}); give a folder"
        ) from None
