"""Download a model of Hugging Face by its name, or take it from the cache of this machine."""

from __future__ import annotations

from pathlib import Path

from dragoman.errors import ConfigError, not_installed

FILES = ("*.json", "*.spm", "model*.safetensors", "model.bin", "*.spm.model", "sentencepiece.model", "*_vocabulary.txt")
"""Patterns of the files to download; ``pytorch_model.bin`` only if there are no other weights."""


def download(name: str, revision: str | None) -> tuple[Path, str]:
    """Download a model of transformers or CTranslate2 from Hugging Face, or take it from the cache.

    Args:
        revision: Branch, tag or commit; None: the newest.

    Returns:
        The folder, and ``NAME@COMMIT``.

    Raises:
        ConfigError: There is no such folder or model, no network, or the package is missing.
    """
    if name.count("/") != 1 or name.startswith((".", "/")):
        raise ConfigError(f"{name}: is neither a folder nor the name of a model such as Helsinki-NLP/opus-mt-en-de")
    try:
        from huggingface_hub import errors, snapshot_download
    except ImportError:
        raise ConfigError(not_installed(f"downloading {name}", "huggingface_hub")) from None
    try:
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=list(FILES)))
        if not any(
            (folder / name).exists() for name in ("model.safetensors", index_of("model.safetensors"), "model.bin")
        ):
            more = [*FILES, "pytorch_model*.bin"]
            folder = Path(snapshot_download(name, revision=revision, allow_patterns=more))
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
    return folder, f"{name}@{folder.name}"  # the cache names it by its commit


def index_of(weights: str) -> str:
    """Return the name of the index that lists the file of each tensor, of weights in several files."""
    return f"{weights}.index.json"
