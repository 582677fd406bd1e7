"""A trained model written in a foreign format: where it lies, and whether it still is that of the bundle.

RUN/exports/ctranslate2-float32/    what `dragoman export RUN --to ctranslate2` writes, and the engine of that name
                                    makes for itself
    manifest.json                   format, quantization, which bundle it was made from, SHA-256 of each file
    certificate.json                with --check: how it compares with ours
"""

from __future__ import annotations

import contextlib
import json
import logging
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from dragoman import __version__
from dragoman.bundle import Bundle, find_bundle, is_unfinished, load_bundle
from dragoman.errors import BundleError, ConfigError, DragomanError
from dragoman.files import MANIFEST, check_sealed, explained, one_at_a_time, sealed_folder
from dragoman.model.weights import n_bytes, untied
from dragoman.toolkits.writing import check, format_of

logger = logging.getLogger(__name__)

CERTIFICATE = "certificate.json"
"""What an export holds beside its own files, if it was compared with the original."""
CARD = "README.md"
"""Of an export for Hugging Face the model card, which says then how it compares."""
EXPORT_VERSION = 1
"""Of what is written: a kept export of another one is made again."""


class Kept(NamedTuple):
    """An export that an engine uses."""

    folder: Path
    temporary: tempfile.TemporaryDirectory[str] | None  # goes with this object, if the run's folder cannot be written


def export(
    run: Path | str, to: str = "ctranslate2", out: Path | str | None = None, quantization: str = "float32"
) -> Path:
    """Write the model of a run in a foreign format.

    Args:
        run: A run folder or a bundle.
        to: One of ``toolkits.writers()``, such as ``ctranslate2``.
        out: The folder to write; an earlier export there is replaced. None: ``exports/FORMAT-QUANTIZATION`` in the run.
            Of a format that is one file, such a file may be named here.
        quantization: How numbers are rounded, one of the format's ``QUANTIZATIONS``. ctranslate2 has ``float32``,
            ``float16``, ``bfloat16``, ``int8``, and ``int8_float16`` or ``int8_bfloat16``, which say what the rest is
            beside int8 matrices.

    Returns:
        The folder, or the file.

    Raises:
        BundleError: There is no bundle or it is damaged.
        ConfigError: The format or quantization is unknown, the format cannot express the model, or ``out`` holds
            something else.
        DragomanError: The folder cannot be written.
    """
    form = format_of(to, quantization)
    folder = home(run, to, quantization) if out is None else Path(out)
    alone = bool(form.FILE) and folder.suffix == form.FILE
    if not alone:
        _refuse_what_is_no_export(folder)
    if folder.name in ("", ".."):
        raise ConfigError(f"{out}: --out must name a folder, not '.' or '..'")
    bundle = load_bundle(run)
    check(to, bundle.model.config, quantization)
    if alone:
        _write_file(bundle, folder, to, quantization)
        return folder
    with explained(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(folder.parent):
            write(bundle, folder, to, quantization)
    return folder


def _write_file(bundle: Bundle, file: Path, to: str, quantization: str) -> None:
    """Write an export that is one file, by itself."""
    form = check(to, bundle.model.config, quantization)
    with explained(file, n_bytes(untied(bundle.model))):
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".dragoman-", dir=file.parent) as aside:
            form.write(bundle, Path(aside), quantization)
            (written,) = Path(aside).glob(f"*{form.FILE}")
            written.replace(file)


def _refuse_what_is_no_export(folder: Path) -> None:
    if folder.exists():
        with explained(folder), one_at_a_time(folder.parent):  # while no other process replaces it
            if folder.exists() and not _is_export(folder):
                raise ConfigError(f"{folder}: already exists and is not an export; choose another --out, or remove it")


def home(run: Path | str, to: str, quantization: str) -> Path:
    """Where an export of a run (or of a bundle that lies by itself) is kept."""
    owner = Path(run)
    if not is_unfinished(owner):
        bundle = find_bundle(owner)
        owner = bundle.parent if bundle.name in ("bundle", ".bundle.old") else bundle
    return owner / "exports" / f"{to}-{quantization}"


def write(bundle: Bundle, folder: Path, to: str, quantization: str) -> None:
    """Write a bundle's export into ``folder``, whole or not at all; see ``export``."""
    form = check(to, bundle.model.config, quantization)
    size = n_bytes(untied(bundle.model))
    with sealed_folder(folder, _facts(bundle, to, quantization), size, unsealed=(CARD,)) as aside:
        form.write(bundle, aside, quantization)


def kept(bundle: Bundle, run: Path | None, to: str, quantization: str) -> Kept:
    """The export of a bundle, written only if there is none yet, or one of another bundle.

    Args:
        run: Where the bundle was loaded from; None, or a folder that cannot be written: a temporary folder is used.
    """
    facts = _facts(bundle, to, quantization)
    if run is not None and facts["bundle"] is not None:
        folder = home(run, to, quantization)
        if _is_of(folder, facts):
            return Kept(folder, None)
        if folder.exists() and not _is_export(folder):
            logger.warning("%s is not an export of this bundle: left unchanged, a temporary folder is used", folder)
        else:
            with contextlib.suppress(OSError):  # a folder that cannot be written: the next best place
                folder.parent.mkdir(exist_ok=True)
                with one_at_a_time(folder.parent):
                    if not _is_of(folder, facts):  # another process may have made it meanwhile
                        _write_or_os_error(bundle, folder, to, quantization)
                return Kept(folder, None)
    temporary = tempfile.TemporaryDirectory(prefix="dragoman-")
    folder = Path(temporary.name) / f"{to}-{quantization}"
    write(bundle, folder, to, quantization)
    return Kept(folder, temporary)


def _write_or_os_error(bundle: Bundle, folder: Path, to: str, quantization: str) -> None:
    try:
        write(bundle, folder, to, quantization)
    except DragomanError as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None
        raise


def _facts(bundle: Bundle, to: str, quantization: str) -> dict[str, Any]:
    return {
        "export": to,
        "export_version": EXPORT_VERSION,
        "quantization": quantization,
        "bundle": bundle.facts.sha256,
        "src_lang": bundle.config.data.src_lang,
        "tgt_lang": bundle.config.data.tgt_lang,
        "dragoman": __version__,
    }


def _is_of(folder: Path, facts: dict[str, Any]) -> bool:
    """Whether a whole export with these facts is there."""
    try:
        found = check_sealed(folder, "conversion")
    except BundleError:
        return False
    return all(found.get(name) == value for name, value in facts.items())


def _is_export(folder: Path) -> bool:
    """Whether a folder is empty or holds an export, damaged or not, and nothing else: one that may be replaced."""
    try:
        there = {path.name for path in folder.iterdir()}
        if not there:
            return True
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return "export" in manifest and there <= {*manifest["files"], MANIFEST, CERTIFICATE, CARD}
    except (OSError, ValueError, TypeError, KeyError):
        return False
