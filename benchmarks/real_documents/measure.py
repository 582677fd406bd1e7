"""Translate real documents by stand-ins, let the judges compare them with their sources, and count the faults."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.real_documents import messages, office, pages
from benchmarks.real_documents.judging import Fault, Read, UnreadableError, compare
from benchmarks.real_documents.stand_ins import STAND_INS, translations
from dragoman.documents.document import DocumentInfo
from dragoman.documents.translate import open_document
from dragoman.errors import DragomanError

Extra = Callable[[bytes, bytes, str, list[str], str], list[Fault]]

JUDGES: dict[str, tuple[Read, Extra | None]] = {
    **dict.fromkeys((".html", ".htm"), (pages.html, pages.html_faults)), ".xhtml": (pages.xhtml, None),
    **dict.fromkeys((".md", ".markdown"), (pages.markdown, None)),
    **dict.fromkeys((".po", ".pot"), (messages.gettext, messages.gettext_faults)),
    **dict.fromkeys((".xlf", ".xliff"), (messages.xliff, messages.xliff_faults)),
    ".srt": (messages.subtitles, None), ".vtt": (messages.web_subtitles, None),
    ".csv": (messages.table, None), ".tsv": (messages.tabbed, None),
    **dict.fromkeys((".docx", ".pptx", ".odt"), (office.office, office.office_faults)),
}  # fmt: skip
"""The judge of each suffix, and what else it looks at."""


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


def judge(
    path: Path, modes: Sequence[str], tgt_lang: str = "de", columns: tuple[str, ...] = ()
) -> list[Judgement]:  # fmt: skip
    """Translate a file with each stand-in and judge it; of a table, the columns with these headings."""
    data, suffix = path.read_bytes(), path.suffix.lower()
    read, extra = JUDGES[suffix]
    try:
        before = read(data)
    except UnreadableError as error:
        return [Judgement(str(path), mode, "unread", str(error)[:200]) for mode in modes]
    judgements = []
    for mode in modes:
        try:
            opened = open_document(data, DocumentInfo(path.name, "en", tgt_lang, columns))
            result, report = opened.finish(translations(opened.texts, STAND_INS[mode]))
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


def measure(folder: Path, modes: Sequence[str], processes: int, log: Path | None, most: int | None) -> dict[str, Any]:
    """Judge all files of a folder; return the counts by suffix and mode."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix.lower() in JUDGES)
    files = files[:: max(1, len(files) // most)] if most else files
    started = time.perf_counter()
    all_judgements: list[Judgement] = []
    with ProcessPoolExecutor(processes) as pool:
        for judgements in pool.map(partial(judge, modes=modes), files, chunksize=4):
            all_judgements += judgements
    if log is not None:
        lines = (json.dumps(vars(judgement), ensure_ascii=False) for judgement in all_judgements)
        log.write_text("\n".join(lines) + "\n", encoding="utf-8")
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
