"""Write a trained model in a foreign format, and find a kept export that still belongs to the bundle.

    dragoman.export("runs/x", "ctranslate2", quantization="int8")

RUN/exports/ctranslate2-float32/    written by `dragoman export RUN --format ctranslate2`, or by the engine of that name
                                    for its own use
    manifest.json                   format, quantization, SHA-256 of its bundle and of each file
    README.md                       the model card of a format that has one
    certificate.json                with --check: the comparison with our model
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from dragoman import __version__
from dragoman.arguments import checked
from dragoman.bundle import Bundle, find_bundle, is_unfinished, load_bundle
from dragoman.errors import BundleError, ConfigError, DragomanError, UnreadableError, listing
from dragoman.files import (
    MANIFEST,
    as_path,
    check_name,
    check_sealed,
    explained,
    final_name,
    flush,
    pinned,
    read_manifest,
    sealed_folder,
    sha256,
    temporary_folder,
)
from dragoman.locks import one_at_a_time
from dragoman.ready import is_ready, pinned_run
from dragoman.toolkits.toolkit import Writer
from dragoman.toolkits.writing import check, format_of

logger = logging.getLogger(__name__)

CERTIFICATE = "certificate.json"
"""Name of the file in an export that holds its comparison with the original."""
CARD = "README.md"
"""Model card of an export; a comparison is added to it, unless a user has changed it."""
COMPARED = "Compared with the original"
"""Heading of the comparison in a card."""
EXPORT_VERSION = 2
"""Version of the files of an export; a kept export of another version is made again."""


Loaded = TypeVar("Loaded")


class KeptExport(NamedTuple):
    """Export that an engine uses."""

    folder: Path
    temporary: contextlib.ExitStack | None  # removes the folder; None: it is the run's


@checked
def export(
    run: Path | str, to: str = "ctranslate2", out: Path | str | None = None, quantization: str = "float32"
) -> Path:
    """Write the model of a run in a foreign format.

    Args:
        run: A run folder or a bundle.
        to: One of ``toolkits.writers()``, such as ``ctranslate2``.
        out: The folder to write; an earlier export there is replaced. None: ``exports/FORMAT-QUANTIZATION`` in the run.
            For a format of one file, ``out`` may be the file.
        quantization: Number format of the weights, one of the format's ``QUANTIZATIONS``. ctranslate2 has ``float32``,
            ``float16``, ``bfloat16``, ``int8``, and ``int8_float16`` or ``int8_bfloat16``: int8 matrices, all else in
            16 bits.

    Returns:
        The folder, or the file.

    Raises:
        BundleError: There is no bundle or it is damaged.
        ConfigError: The format or quantization is unknown, the format cannot express the model, or ``out`` holds
            something else.
        DragomanError: The folder cannot be written.
    """
    form = format_of(to, quantization)
    named = export_folder(run, to, quantization) if out is None else Path(out)
    run, folder = pinned_run(run), pinned(named)
    check_name(folder)
    if not is_one_file(folder, form):
        _refuse_what_is_no_export(folder)
    if named.name in ("", ".."):
        raise ConfigError(f"{out}: --out must name a folder, not '.' or '..'")
    bundle = load_bundle(run)
    check(to, bundle.sizes, quantization)
    if is_one_file(folder, form):
        _write_file(bundle, folder, to, quantization)
        return named
    with explained(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(folder.parent):
            write(bundle, folder, to, quantization)
    return named


def _write_file(bundle: Bundle, file: Path, to: str, quantization: str) -> None:
    """Write an export that is one file, whole or not at all."""
    form = check(to, bundle.sizes, quantization)
    with explained(file, bundle.n_bytes):
        file.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(file) as aside:
            form.write(bundle, aside, quantization)
            (written,) = aside.glob(f"*{form.FILE}")
            flush(written)
            written.replace(file)
        # An export in another format may have the same stem, and so a certificate of this name.
        certificate = certificate_beside(file)
        if (older := comparison_in(certificate)) and older.get("export", to) == to:
            certificate.unlink(missing_ok=True)
        flush(file.parent)


def is_one_file(out: Path, form: Writer) -> bool:
    """True if an export of this name is written as one file."""
    return bool(form.FILE) and out.suffix == form.FILE


def certificate_of(export: Path) -> Path:
    """Return where the comparison of an export is written: in its folder, or next to its file."""
    return certificate_beside(export) if export.is_file() else export / CERTIFICATE


def certificate_beside(file: Path) -> Path:
    """Return where the comparison of an export that is one file is written, also before the export is."""
    return file.with_suffix(f".{CERTIFICATE}")


def comparison_in(path: Path) -> dict[str, Any]:
    """Return the figures of a certificate; none if a file is missing or something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) and "n_identical" in content else {}


def _refuse_what_is_no_export(folder: Path) -> None:
    if folder.exists():
        with explained(folder), one_at_a_time(folder.parent):  # while no other process replaces it
            if folder.exists() and (why := _why_kept(folder)):
                raise ConfigError(f"{folder}: already exists and {why}; choose another --out, or remove it")


def export_folder(run: Path | str, to: str, quantization: str) -> Path:
    """Return the folder of a kept export of a run, a bundle outside a run, or a ready bundle (in ``exports/NAME``)."""
    if is_ready(run):
        return Path("exports") / run / f"{to}-{quantization}"
    owner = as_path(run)
    if not is_unfinished(owner):
        bundle = find_bundle(owner)
        owner = bundle.parent if bundle.name in ("bundle", ".bundle.old") else bundle
    return owner / "exports" / f"{to}-{quantization}"


def write(bundle: Bundle, folder: Path, to: str, quantization: str) -> None:
    """Write a bundle's export into ``folder``, whole or not at all; see ``export``.

    An older export's comparison does not stay: the new one has none until it is compared itself.
    """
    form = check(to, bundle.sizes, quantization)
    facts = {**_facts(bundle, to, quantization), **bundle.config.model_dump(mode="json", include={"decode"})}
    with sealed_folder(folder, facts, bundle.n_bytes, unsealed=(CARD, CERTIFICATE)) as aside:
        form.write(bundle, aside, quantization)
        if (aside / CARD).is_file():
            facts["card"] = sha256(aside / CARD)


def kept_export(bundle: Bundle, run: Path | None, to: str, quantization: str) -> KeptExport:
    """Return the kept export of a bundle; write it first if there is none, or one of another bundle.

    Args:
        run: Folder that the bundle was loaded from; None or a read-only one: a temporary folder is used.
    """
    facts = _facts(bundle, to, quantization)
    if run is not None and facts["bundle"] is not None:
        folder = export_folder(run, to, quantization)
        with contextlib.suppress(OSError, UnreadableError):  # read-only, or it cannot be read now: a temporary one
            if _is_of(folder, facts):
                return KeptExport(folder, None)
            if folder.exists() and (why := _why_kept(folder)):
                logger.warning("%s: %s; it is left unchanged, a temporary folder is used", f"{folder}", why)
            else:
                folder.parent.mkdir(exist_ok=True)
                with one_at_a_time(folder.parent):
                    if not _is_of(folder, facts):  # another process may have made it meanwhile
                        _write_or_os_error(bundle, folder, to, quantization)
                return KeptExport(folder, None)
    with contextlib.ExitStack() as temporary:
        folder = temporary.enter_context(temporary_folder()) / f"{to}-{quantization}"
        write(bundle, folder, to, quantization)
        return KeptExport(folder, temporary.pop_all())


def load_kept_export(
    bundle: Bundle, run: Path | None, to: str, quantization: str, load: Callable[[Path], Loaded]
) -> tuple[KeptExport, Loaded]:
    """Return the kept export of a bundle, as ``kept_export`` does, and what ``load`` makes of its folder.

    Another process may replace the folder while it is loaded. Then it is loaded again, and at last from a temporary
    folder, which no other process replaces: two processes with two bundles of one run could replace it for ever.
    """
    facts = _facts(bundle, to, quantization)
    for owner in (run, run, None):
        export = kept_export(bundle, owner, to, quantization)
        before = _identity_of(export.folder)
        try:
            loaded = load(export.folder)
        except DragomanError:
            if export.temporary is not None:
                export.temporary.close()
                raise
            if before is not None and _identity_of(export.folder) == before:
                raise
        else:
            if export.temporary is not None or _is_of(export.folder, facts, read=read_manifest):
                return export, loaded
    raise AssertionError("the temporary folder of this process was replaced")


def _identity_of(folder: Path) -> tuple[int, int] | None:
    """Return inode and time of a folder, which differ once it is replaced; None: there is none at this moment."""
    try:
        stat = folder.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns


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


def _is_of(folder: Path, facts: dict[str, Any], *, read: Callable[..., dict[str, Any]] = check_sealed) -> bool:
    """True if the folder holds an export with these facts, a whole one unless ``read`` is ``read_manifest``."""
    try:
        return facts.items() <= read(folder, "conversion").items()
    except BundleError:
        return False


def _why_kept(folder: Path) -> str:
    """Return the reason why a folder may not be replaced; "" if it is empty, or an export, damaged or not, alone."""
    try:
        there = {final_name(path) for path in folder.iterdir()}
        if not there:
            return ""
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        others = there - {*manifest["files"], MANIFEST, CERTIFICATE, CARD}
        is_own_card = may_replace_card(folder, manifest)
        is_export = "export" in manifest
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        is_export = False
    if not is_export:
        return "is not an export"
    reasons = [f"also has {listing(others)}"] if others else []
    return " and ".join([*reasons, *([] if is_own_card else [f"its {CARD} is yours or was changed"])])


def may_replace_card(folder: Path, manifest: Mapping[str, Any]) -> bool:
    """True if an export has no README.md, or the card that dragoman wrote; any other is a user's.

    The manifest has the sum of the card as it was exported, the certificate that of the card with the comparison.
    Earlier versions kept none. Their cards are known by the bundle that they name, or by a comparison.
    """
    path, certificate = folder / CARD, comparison_in(folder / CERTIFICATE)
    if not os.path.lexists(path):
        return True
    exported = manifest.get("card") or manifest["files"].get(CARD, {}).get("sha256")
    sums = {exported, certificate.get("card")} - {None}
    try:
        if sums:
            return sha256(path) in sums
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return f"| made from bundle | {manifest.get('bundle')} |" in text or (bool(certificate) and COMPARED in text)
