"""Translate real documents by stand-ins, let the judges compare them with their sources, and count the faults."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.real_documents import gettext, markdown, office, pages, subtitles, tables, xliff
from benchmarks.real_documents.judging import Fault, Read, UnreadableError, compare, is_unspaced
from benchmarks.real_documents.stand_ins import STAND_INS, translations
from dragoman.documents.document import DocumentInfo
from dragoman.documents.translate import open_document
from dragoman.errors import DragomanError
from dragoman.translation.assemble import Translation
from dragoman.translation.notes import Events
from dragoman.translation.options import TranslateOptions
from dragoman.translation.translator import Translator

Extra = Callable[[bytes, bytes, str, list[str], str], list[Fault]]

SEED = 41

JUDGES: dict[str, tuple[Read, Extra | None]] = {
    **dict.fromkeys((".html", ".htm"), (pages.html, pages.html_faults)), ".xhtml": (pages.xhtml, None),
    **dict.fromkeys((".md", ".markdown"), (markdown.markdown, None)), ".mdx": (markdown.mdx, None),
    **dict.fromkeys((".po", ".pot"), (gettext.gettext, gettext.gettext_faults)),
    **dict.fromkeys((".xlf", ".xliff"), (xliff.xliff, xliff.xliff_faults)),
    **{suffix: (read, subtitles.faults) for suffix, read in subtitles.READERS.items()},
    ".csv": (tables.table, None), ".tsv": (tables.tabbed, None),
    **dict.fromkeys(office.SUFFIXES, (office.office, office.office_faults)),
}  # fmt: skip
"""The judge of each suffix, and what else it looks at."""

VARIANTS: dict[str, Callable[[bytes], bytes | None]] = {
    **dict.fromkeys((".xlf", ".xliff"), xliff.without_targets), ".po": gettext.without_translations,
}  # fmt: skip
"""What else is tried of a file: most catalogues that are published are translated already."""


@dataclass
class Judgement:
    """What became of one file in one mode."""

    path: str
    mode: str
    outcome: str
    """``right``, ``faults``, ``refused`` (by dragoman), ``unread`` (by the judge) or ``crash``."""
    detail: str = ""
    faults: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    same_bytes: bool = False
    segments: int = 0


Translate = Callable[..., dict[str, Translation]]
"""Returns the translation of each text. A stand-in is told by ``unspaced=True`` if characters are words."""

NAMES_LANGUAGES = (".xlf", ".xliff", ".po", ".pot")
"""Suffixes of files that say what their source language is."""

MODES: dict[str, Translate] = {mode: partial(translations, stand_in=one) for mode, one in STAND_INS.items()}
"""The stand-ins of a model by their names; ``model`` is added for a real one, which is judged by less."""


def judge(
    path: Path, modes: Sequence[str] | Mapping[str, Translate], tgt_lang: str = "de", columns: tuple[str, ...] = ()
) -> list[Judgement]:  # fmt: skip
    """Translate a file with each stand-in and judge it; of a table, these columns, or those with words."""
    modes = modes if isinstance(modes, Mapping) else {mode: MODES[mode] for mode in modes}
    data, suffix = path.read_bytes(), path.suffix.lower()
    columns = columns or (tables.columns_of(path, data) if suffix in (".csv", ".tsv") else ())
    variant = VARIANTS[suffix](data) if suffix in VARIANTS else None
    judgements = _judged(data, path, modes, (tgt_lang, columns))
    return judgements if variant is None else judgements + _judged(variant, path, modes, (tgt_lang, columns))


def _judged(
    data: bytes, path: Path, modes: Mapping[str, Translate], wanted: tuple[str, tuple[str, ...]]
) -> list[Judgement]:  # fmt: skip
    suffix, (tgt_lang, columns) = path.suffix.lower(), wanted
    read, extra = JUDGES[suffix]
    try:
        before = read(data)
    except UnreadableError as error:
        return [Judgement(str(path), mode, "unread", str(error)[:200]) for mode in modes]
    unspaced = suffix not in NAMES_LANGUAGES and is_unspaced(before)
    judgements = []
    for mode, translate in modes.items():
        if unspaced and mode == "model":
            judgements.append(Judgement(str(path), mode, "unread", "its language is not the model's"))
            continue
        try:
            languages = ("ja", "zh") if unspaced else ("en", tgt_lang)
            opened = open_document(data, DocumentInfo(path.name, *languages, columns))
            result, report = opened.finish(
                translate(opened.texts, unspaced=True) if unspaced else translate(opened.texts)
            )
        except DragomanError as error:
            judgements.append(Judgement(str(path), mode, "refused", str(error)[:300]))
            continue
        except Exception as error:
            judgements.append(Judgement(str(path), mode, "crash", f"{type(error).__name__}: {error}"[:300]))
            continue
        named = [segment.text for segment in report.left]
        try:
            faults = compare(before, read(result), mode, named)
            faults += [] if extra is None else extra(data, result, mode, named, suffix)
        except UnreadableError as error:
            faults = [Fault("unreadable", path.name, str(error))]
        judgements.append(
            Judgement(
                str(path), mode, "faults" if faults else "right", "", list(map(str, faults[:20])),
                [fault.kind for fault in faults], result == data, report.found,
            )
        )  # fmt: skip
    return judgements


def by_model(run: Path) -> tuple[Translate, str]:
    """Return a function that translates texts as ``translate_document`` does, and the target language."""
    translator = Translator.load(run)
    plan = translator.plan(TranslateOptions(alignments=True, beam_size=1))

    def translate(texts: list[str]) -> dict[str, Translation]:
        events = Events(failed=lambda note: None)
        return dict(zip(texts, translator.translate_planned(texts, plan, events), strict=True))

    return translate, plan.tgt_lang or "de"


def files_of(folder: Path, most: int | None, most_bytes: int | None = None) -> list[Path]:
    """Return the documents of a folder, of which at most ``most`` are drawn with ``SEED``; larger ones are left out."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix.lower() in JUDGES)
    files = [path for path in files if most_bytes is None or path.stat().st_size <= most_bytes]
    return sorted(random.Random(SEED).sample(files, min(most, len(files)))) if most else files


def measure(
    files: Sequence[Path], modes: Sequence[str], processes: int, log: Path | None, run: Path | None = None
) -> dict[str, Any]:  # fmt: skip
    """Judge files; return the counts by suffix and mode.

    Args:
        files: The files.
        modes: Names of stand-ins; with ``run`` a real model translates instead.
        processes: Number of processes of the stand-ins.
        log: File to write what became of each, one after another.
        run: Folder of a trained model.
    """
    started = time.perf_counter()
    all_judgements: list[Judgement] = []
    with ExitStack() as stack:
        if run is not None:
            translate, tgt_lang = by_model(run)
            judged: Iterable[list[Judgement]] = (judge(path, {"model": translate}, tgt_lang) for path in files)
        else:
            pool = stack.enter_context(ProcessPoolExecutor(processes))
            judged = pool.map(partial(judge, modes=modes), files, chunksize=4)
        written = stack.enter_context(log.open("w", encoding="utf-8")) if log is not None else None
        for judgements in judged:
            all_judgements += judgements
            for judgement in judgements if written else ():
                print(json.dumps(vars(judgement), ensure_ascii=False), file=written, flush=True)
    return summary(all_judgements) | {"files": len(files), "seconds": round(time.perf_counter() - started, 1)}


def summary(judgements: Iterable[Judgement]) -> dict[str, Any]:
    """Return the counts: files with faults, by suffix, and faults by kind."""
    by_suffix: dict[str, Counter[str]] = {}
    kinds: Counter[str] = Counter()
    outcomes: dict[str, str] = {}
    rank = ["unread", "right", "refused", "faults", "crash"]
    same = Counter[str]()
    for judgement in judgements:
        before = outcomes.get(judgement.path, "unread")
        outcomes[judgement.path] = max(before, judgement.outcome, key=rank.index)
        kinds.update(f"{Path(judgement.path).suffix} {judgement.mode}: {kind}" for kind in set(judgement.kinds))
        if judgement.mode == "same" and judgement.outcome in ("right", "faults"):
            same[
                f"{Path(judgement.path).suffix.lower()} {'same bytes' if judgement.same_bytes else 'other bytes'}"
            ] += 1
    for path, outcome in outcomes.items():
        by_suffix.setdefault(Path(path).suffix.lower(), Counter())[outcome] += 1
    return {
        "outcomes": dict(Counter(outcomes.values())), "by_suffix": {k: dict(v) for k, v in sorted(by_suffix.items())},
        "files_by_kind_of_fault": dict(kinds.most_common()), "same": dict(sorted(same.items())),
    }  # fmt: skip
