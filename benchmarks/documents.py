"""Do documents come back whole?

    python -m benchmarks.documents FOLDER --as before|after [--log FILE]    real ones, judged by other programs' parsers
    python -m benchmarks.documents FOLDER --record fresh ...                others, recorded by themselves
    python -m benchmarks.documents --run RUN --src SRC                      200, written by libraries and by hand

Real documents are translated by stand-ins of a model (``real_documents.stand_ins``), so that the place of each word is
known. ``python -m benchmarks.real_documents.collect`` draws them from repositories.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import re
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.real_documents import measure as real_documents
from benchmarks.record import RESULTS, machine, save
from dragoman.data.corpus import read_lines
from dragoman.documents.translate import Report, translate_document
from dragoman.translation.translator import Translator

FILES = 200

Sentences = Callable[[int], list[str]]


class _Source:
    """Sentences in turn, so that each stands in files of several formats."""

    def __init__(self, lines: Sequence[str], seed: int) -> None:
        self.lines, self.chance = [line for line in lines if line.strip()], random.Random(seed)

    def __call__(self, n: int) -> list[str]:
        return [self.chance.choice(self.lines) for _ in range(n)]

    def split(self, sentence: str) -> tuple[str, str, str]:
        """Before, within and after two of its words."""
        words = sentence.split()
        at = self.chance.randrange(max(1, len(words) - 1))
        return " ".join(words[:at]), " ".join(words[at : at + 2]), " ".join(words[at + 2 :])


def _around(before: str, inside: str, after: str, opening: str, closing: str) -> str:
    return " ".join(part for part in (before, f"{opening}{inside}{closing}", after) if part)


def text_file(source: _Source) -> bytes:
    """Paragraphs, blank lines, figures."""
    return "\n".join(
        [source(1)[0], "", *source(4), "  ", f"Price: {source.chance.randint(1, 99)}.50", "12.5", ""]
    ).encode()


def markdown(source: _Source) -> bytes:
    """What a README has."""
    title, one, two, three, item, cell, other, quote = source(8)
    before, inside, after = source.split(one)
    wrapped = three.split()
    half = len(wrapped) // 2
    return (
        f"---\ntitle: kept\n---\n# {title}\n\n{_around(before, inside, after, '**', '**')} {two}\n\n"
        f'{" ".join(wrapped[:half])}\n{" ".join(wrapped[half:])}\n\n- {item}\n- [{other}](https://a.org/b_c "t")\n\n'
        f"> {quote}\n\n| {cell} | 42 |\n|---|---|\n| {one} | `x = 1` |\n\n```python\nkept = 'code'\n```\n"
    ).encode()


def web_page(source: _Source) -> bytes:
    """A page with a head, navigation, a table, a form, entities, scripts."""
    title, *rest = source(8)
    before, inside, after = source.split(rest[0])
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f"<style>p {{ color: red }}</style></head>\n<body class='a'><nav><a href=\"/x?a=1&amp;b\">{rest[1]}</a></nav>\n"
        f"<p>{_around(before, inside, after, '<em class=x>', '</em>')}</p>\n"
        f"<table><tr><td>{rest[2]}<td>&nbsp;<td>42</table>\n"
        f"<ul><li>{rest[3]}<li>{rest[4]}</ul><img src=a.png alt=\"{rest[5]}\"><br>\n<script>if (a < b) run('kept')</script>\n"
        f"<!-- kept --><p>&copy; 2024 {rest[6]}</p></body></html>\n"
    ).encode()


def clock_time(seconds: float, mark: str) -> str:
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{mark}{round(seconds % 1 * 1000):03}"


def _cues(source: _Source, mark: str) -> str:
    """Sentences, each over one to three cues."""
    out, at_s, number = [], 1.0, 1
    for sentence in source(6):
        words = sentence.split()
        n = min(len(words), source.chance.choice((1, 1, 2, 3)))
        cuts = [len(words) * i // n for i in range(n + 1)]
        for start, end in pairwise(cuts):
            length_s = 0.4 * (end - start)
            shown = " ".join(words[start:end])
            shown = f"<i>{shown}</i>" if source.chance.random() < 0.2 and n == 1 else shown
            out.append(f"{number}\n{clock_time(at_s, mark)} --> {clock_time(at_s + length_s, mark)}\n{shown}\n")
            number, at_s = number + 1, at_s + length_s + 0.1
        at_s += 3
    return "\n".join(out)


def subrip(source: _Source) -> bytes:
    """SubRip, with Windows line ends."""
    return _cues(source, ",").replace("\n", "\r\n").encode()


def webvtt(source: _Source) -> bytes:
    """WebVTT with a style and a note."""
    return ("WEBVTT\n\nSTYLE\n::cue { color: red }\n\nNOTE kept\n\n" + _cues(source, ".")).encode()


def table(source: _Source) -> bytes:
    """A .csv with quotes."""
    rows = [f'{i},"{sentence}",kept {i}' for i, sentence in enumerate(source(8))]
    return "\r\n".join(["id,text,note", *rows, ""]).encode()


def messages(source: _Source) -> bytes:
    """A .po by polib: plain, plural and two-line messages."""
    import polib

    made = polib.POFile()
    made.metadata = {"Content-Type": "text/plain; charset=utf-8", "Plural-Forms": "nplurals=2; plural=(n != 1);"}
    one, other, *rest = dict.fromkeys(source(9))
    made.append(polib.POEntry(msgid=one, msgid_plural=other, msgstr_plural={0: "", 1: ""}))
    made.append(polib.POEntry(msgid=f"{rest[0]}\n{rest[1]}\n", comment="two lines"))
    for i, sentence in enumerate(rest[2:]):
        made.append(polib.POEntry(msgid=sentence, occurrences=[("a.c", str(i))], msgctxt=f"c{i}"))
    return str(made).encode()


def xliff_1(source: _Source) -> bytes:
    """XLIFF 1.2 with inline elements."""
    units = []
    for i, sentence in enumerate(source(6)):
        shown = _around(*source.split(sentence), '<g id="1">', "</g>") + '<x id="2"/>'
        units.append(f'    <trans-unit id="{i}"><source>{shown}</source><note>kept</note></trans-unit>')
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
        '  <file original="a" source-language="en" target-language="de" datatype="plaintext"><body>\n'
        + "\n".join(units) + "\n  </body></file>\n</xliff>\n"
    ).encode()  # fmt: skip


def xliff_2(source: _Source) -> bytes:
    """XLIFF 2.0 with inline elements."""
    units = ""
    for i, sentence in enumerate(source(6)):
        shown = _around(*source.split(sentence), '<pc id="1">', "</pc>")
        units += f'<unit id="u{i}"><segment><source>{shown}</source></segment></unit>\n'
    return (
        '<xliff version="2.0" srcLang="en" trgLang="de" xmlns="urn:oasis:names:tc:xliff:document:2.0">'
        f'<file id="f">\n{units}</file></xliff>'
    ).encode()


def word(source: _Source) -> bytes:
    """A .docx by python-docx: heading, runs, list, table, header, footer, comment, picture of a page break."""
    import docx

    made = docx.Document()
    title, one, two, item, cell, head, foot, comment = source(8)
    made.add_heading(title, 1)
    paragraph = made.add_paragraph()
    before, inside, after = source.split(one)
    paragraph.add_run(f"{before} " if before else "")
    paragraph.add_run(inside).bold = True
    paragraph.add_run(f" {after}" if after else "")
    made.add_paragraph(item, style="List Bullet")
    made.add_page_break()
    made.add_paragraph(two)
    grid = made.add_table(1, 2)
    grid.cell(0, 0).text, grid.cell(0, 1).text = cell, "42"
    made.sections[0].header.paragraphs[0].text = head
    made.sections[0].footer.paragraphs[0].text = foot
    made.add_comment(paragraph.runs, text=comment)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def slides(source: _Source) -> bytes:
    """A .pptx by python-pptx: title, points with runs, table, notes."""
    import pptx
    from pptx.util import Inches

    made = pptx.Presentation()
    title, point, other, cell, note = source(5)
    slide = made.slides.add_slide(made.slide_layouts[1])
    slide.shapes.title.text = title
    frame = slide.placeholders[1].text_frame
    frame.text = point
    paragraph = frame.add_paragraph()
    before, inside, after = source.split(other)
    for text, bold in ((f"{before} " if before else "", None), (inside, True), (f" {after}" if after else "", None)):
        run = paragraph.add_run()
        run.text, run.font.bold = text, bold
    grid = slide.shapes.add_table(1, 2, Inches(1), Inches(5), Inches(4), Inches(1)).table
    grid.cell(0, 0).text, grid.cell(0, 1).text = cell, "42"
    slide.notes_slide.notes_text_frame.text = note
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def open_document_text(source: _Source) -> bytes:
    """An .odt by odfpy: heading, span, list, table, footnote, comment."""
    from odf import dc, office, opendocument, style, table, text

    made = opendocument.OpenDocumentText()
    title, one, item, cell, foot, comment = source(6)
    bold = style.Style(name="Bold", family="text")
    bold.addElement(style.TextProperties(fontweight="bold"))
    made.automaticstyles.addElement(bold)
    made.text.addElement(text.H(outlinelevel=1, text=title))
    before, inside, after = source.split(one)
    paragraph = text.P(text=f"{before} " if before else "")
    paragraph.addElement(text.Span(stylename=bold, text=inside))
    paragraph.addText(f" {after}" if after else "")
    note, body = text.Note(noteclass="footnote"), text.NoteBody()
    body.addElement(text.P(text=foot))
    note.addElement(text.NoteCitation(text="1"))
    note.addElement(body)
    paragraph.addElement(note)
    remark = office.Annotation()
    remark.addElement(dc.Creator(text="kept"))
    remark.addElement(text.P(text=comment))
    paragraph.addElement(remark)
    made.text.addElement(paragraph)
    points, point = text.List(), text.ListItem()
    point.addElement(text.P(text=item))
    points.addElement(point)
    made.text.addElement(points)
    grid, row, field = table.Table(), table.TableRow(), table.TableCell()
    grid.addElement(table.TableColumn())
    field.addElement(text.P(text=cell))
    row.addElement(field)
    grid.addElement(row)
    made.text.addElement(grid)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


KINDS: dict[str, tuple[str, Callable[[_Source], bytes]]] = {
    "text": (".txt", text_file), "Markdown": (".md", markdown), "HTML": (".html", web_page), "SubRip": (".srt", subrip),
    "WebVTT": (".vtt", webvtt), "table": (".csv", table), "gettext": (".po", messages), "XLIFF 1.2": (".xlf", xliff_1),
    "XLIFF 2.0": (".xliff", xliff_2), "Word": (".docx", word), "PowerPoint": (".pptx", slides),
    "OpenDocument": (".odt", open_document_text),
}  # fmt: skip


# --- read by others ---------------------------------------------------------------------------------------------------


class _Texts(HTMLParser):
    """Text of a page by blocks, as Python's own parser sees it."""

    def __init__(self) -> None:
        super().__init__()
        self.texts, self.skips = [""], 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.skips += tag in ("script", "style")
        if tag not in ("em", "a", "meta"):
            self.texts.append("")
        self.texts += [value or "" for name, value in attrs if name == "alt"] + [""] * (tag == "img")

    def handle_endtag(self, tag: str) -> None:
        self.skips -= tag in ("script", "style")
        if tag not in ("em", "a"):
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if not self.skips:
            self.texts[-1] += data


def _of_page(data: bytes) -> list[str]:
    reader = _Texts()
    reader.feed(data.decode())
    return reader.texts


def _of_subtitles(data: bytes) -> list[str]:
    """Whole sentences: cues up to a pause."""
    text = re.sub(r"</?i>", "", data.decode().replace("\r", ""))
    cues = re.findall(r"(\d\d):(\d\d):(\d\d)[,.](\d{3}) --> (\d\d):(\d\d):(\d\d)[,.](\d{3})\n(.*)", text)
    found: list[str] = []
    last = -10_000
    for *times, shown in cues:
        start, end = (((int(h) * 60 + int(m)) * 60 + int(s)) * 1000 + int(ms) for h, m, s, ms in (times[:4], times[4:]))
        if start - last < 1500:
            found[-1] += f" {shown}"
        else:
            found.append(shown)
        last = end
    return found


def _of_table(data: bytes) -> list[str]:
    import csv

    return [row["text"] for row in csv.DictReader(io.StringIO(data.decode(), newline=""))]


def _of_messages(data: bytes) -> list[str]:
    import polib

    found: list[str] = []
    for entry in polib.pofile(data.decode()):
        texts = list(entry.msgstr_plural.values()) if entry.msgid_plural else entry.msgstr.split("\n")
        empty = not any(texts)
        own = [entry.msgid, entry.msgid_plural] if entry.msgid_plural else entry.msgid.split("\n")
        found += own if empty else texts
    return found


def _of_xliff(data: bytes) -> list[str]:
    from lxml import etree

    root = etree.fromstring(data)
    name = "target" if root.xpath("//*[local-name()='target']") else "source"
    return ["".join(each.itertext()) for each in root.xpath(f"//*[local-name()='{name}']")]


def _of_word(data: bytes) -> list[str]:
    import docx

    read = docx.Document(io.BytesIO(data))
    cells = [cell.text for grid in read.tables for row in grid.rows for cell in row.cells]
    around = [each.text for part in (read.sections[0].header, read.sections[0].footer) for each in part.paragraphs]
    return [*(each.text for each in read.paragraphs), *cells, *around, *(each.text for each in read.comments)]


def _of_slides(data: bytes) -> list[str]:
    import pptx

    found = []
    for slide in pptx.Presentation(io.BytesIO(data)).slides:
        for shape in slide.shapes:
            if shape.has_text_frame:
                found += [each.text for each in shape.text_frame.paragraphs]
            if shape.has_table:
                found += [cell.text for row in shape.table.rows for cell in row.cells]
        found.append(slide.notes_slide.notes_text_frame.text)
    return found


def _of_open_document(data: bytes) -> list[str]:
    from odf import opendocument, teletype, text

    read = opendocument.load(io.BytesIO(data))
    found = []
    for kind in (text.H, text.P):
        for each in read.getElementsByType(kind):
            inner = [teletype.extractText(one) for one in each.getElementsByType(text.P) if one is not each]
            whole = teletype.extractText(each)
            for one in inner:
                whole = whole.replace(one, "", 1)
            found.append(re.sub(r"(1)?(kept)?$", "", whole))
    return found


def _of_markdown(data: bytes) -> list[str]:
    from markdown_it import MarkdownIt

    found = []
    body = data.decode().split("---\n", 2)[2]
    for token in MarkdownIt("commonmark").enable("table").parse(body):
        if token.type == "inline":
            said = {"softbreak": " ", "code_inline": ""}
            found.append("".join(said.get(each.type, each.content) for each in token.children or []))
    return found


READERS: dict[str, Callable[[bytes], list[str]]] = {
    ".txt": lambda data: data.decode().split("\n"), ".md": _of_markdown, ".html": _of_page, ".srt": _of_subtitles,
    ".vtt": _of_subtitles, ".csv": _of_table, ".po": _of_messages, ".xlf": _of_xliff, ".xliff": _of_xliff,
    ".docx": _of_word, ".pptx": _of_slides, ".odt": _of_open_document,
}  # fmt: skip


# --- what must be the same --------------------------------------------------------------------------------------------


def unchanged(suffix: str, before: bytes, after: bytes) -> bool:
    """Is what is no text the same bytes?"""
    if suffix in (".docx", ".pptx", ".odt"):
        with zipfile.ZipFile(io.BytesIO(before)) as one, zipfile.ZipFile(io.BytesIO(after)) as other:
            if [(each.filename, each.date_time) for each in one.infolist()] != [
                (each.filename, each.date_time) for each in other.infolist()
            ]:
                return False
            kept = [name for name in one.namelist() if one.read(name) == other.read(name)]
            changed = set(one.namelist()) - set(kept)
        return all(re.fullmatch(r"(?:word|ppt)/.*\.xml|(?:content|styles)\.xml", name) for name in changed)
    patterns = {  # of what stays
        ".html": rb"<[^>]*>|<script.*?</script>|&nbsp;|<style.*?</style>", ".xlf": rb"<source>.*?</source>|<note>.*?</note>|<(?!/?(?:g|x|target)\b)[^>]*>",
        ".xliff": rb"<source>.*?</source>|<(?!/?(?:pc|target)\b)[^>]*>", ".po": rb"^(?:#.*|msgid.*|msgctxt.*)$",
        ".srt": rb"^(?:\d+|.*-->.*)\r$", ".vtt": rb"^(?:\d+|.*-->.*|WEBVTT|STYLE|::cue.*|NOTE.*)$",
        ".csv": rb"^\d+,|,kept \d+\r$", ".md": rb"^---.*?^---$|^```.*?^```$|\]\([^)]*\)|^[#>|-]+|`[^`]*`", ".txt": rb"^\s*$|12\.5",
    }  # fmt: skip
    if suffix == ".html":  # texts of attributes are translated
        before, after = (re.sub(rb'alt="[^"]*"', b"alt", each) for each in (before, after))
    if suffix == ".md":  # and titles of links
        before, after = (re.sub(rb'(\]\([^)\s]* )"[^"]*"\)', rb"\1title)", each) for each in (before, after))
    if suffix == ".xliff":  # a segment says that it is translated now
        after = after.replace(b'<segment state="translated">', b"<segment>")
    flags = re.MULTILINE | re.DOTALL if suffix in (".html", ".xlf", ".xliff", ".md") else re.MULTILINE
    return re.findall(patterns[suffix], before, flags) == re.findall(patterns[suffix], after, flags)


def _plain(text: str) -> str:
    return " ".join(text.split())


def measure(run: Path, lines: Sequence[str], n_files: int, beam_size: int | None) -> dict[str, Any]:
    """Translate the files, and look at each with another reader."""
    translator, sentences_known = Translator.load(run), frozenset(lines)
    total, by_kind, same_bytes, compared, differing = Report(0, 0), {}, 0, 0, []
    reasons: Counter[str] = Counter()
    known: dict[str, str] = {}
    n_paired = 0
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(n_files):
            name = list(KINDS)[number % len(KINDS)]
            suffix, make = KINDS[name]
            source, out = Path(folder, f"{number}{suffix}"), Path(folder, f"{number}.de{suffix}")
            source.write_bytes(make(_Source(lines, number // len(KINDS))))
            report = translate_document(
                translator, source, out, columns=["text"] if suffix == ".csv" else [],
                beam_size=beam_size,
            )  # fmt: skip
            total += report
            reasons.update(each.why for each in report.left)
            kind = by_kind.setdefault(name, {"files": 0, "segments": 0, "translated": 0, "texts_by_another_reader": 0})
            kind["files"] += 1
            kind["segments"] += report.found
            kind["translated"] += report.translated
            before, after = source.read_bytes(), out.read_bytes()
            same_bytes += unchanged(suffix, before, after)
            texts, translations = READERS[suffix](before), READERS[suffix](after)
            if len(texts) != len(translations):
                differing.append(f"{name}: {len(texts)} texts became {len(translations)}")
                continue
            kind["texts_by_another_reader"] += sum(any(map(str.isalpha, text)) for text in texts)
            n_paired += len(texts)
            for text, translation in zip(map(_plain, texts), map(_plain, translations), strict=True):
                if text in sentences_known:  # a sentence by itself
                    compared += 1
                    if known.setdefault(text, translation) != translation:
                        differing.append(f"{name}: {text!r}: {known[text]!r} and {translation!r}")
    sentences = list(known)
    alone = [one.text for one in translator.translate(sentences, beam_size=beam_size)]
    unlike = sum(_plain(one) != known[text] for one, text in zip(alone, sentences, strict=True))
    return {
        "files": n_files, "segments": total.found, "translated": total.translated, "named": len(total.left),
        "why_named": dict(reasons),
        "share_translated_or_named": (total.translated + len(total.left)) / total.found,
        "share_named": len(total.left) / total.found,
        "files_whose_unchanged_parts_are_the_same_bytes": same_bytes,
        "texts_paired_by_another_reader": n_paired,
        "sentences_compared_over_formats": compared, "different_sentences": len(sentences),
        "translated_otherwise_in_another_file_or_format": len(differing), "differing": differing[:10],
        "translated_otherwise_by_translate": unlike, "notes": len(total.notes),
        "seconds": round(time.perf_counter() - started, 1), "by_kind": by_kind,
    }  # fmt: skip


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="real documents to judge, instead of made ones")
    parser.add_argument("--model", type=Path, help="run that translates the real documents, instead of stand-ins")
    parser.add_argument("--run", type=Path, help="the model that translates the made ones")
    parser.add_argument("--src", type=Path, help="sentences to write documents of")
    parser.add_argument("--files", type=int, help=f"number of files; default: {FILES}, or all of the folder")
    parser.add_argument("--most-bytes", type=int, help="leave out larger real documents")
    parser.add_argument("--beam-size", type=int, help="default: the run's")
    parser.add_argument("--as", dest="when", choices=["before", "after"], default="after", help="entry of the record")
    parser.add_argument("--record", default="real", help="name of the record of real documents, without .json")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="of the stand-ins")
    parser.add_argument("--log", type=Path, help="write what became of each real file here, a JSON object a line")
    options = parser.parse_args()
    if options.folder is not None and options.model is not None:
        files = real_documents.files_of(options.folder, options.files, options.most_bytes)
        figures = real_documents.measure(files, [], 1, options.log, options.model)
        limit = "" if options.most_bytes is None else f" --most-bytes {options.most_bytes}"
        record_by_model(options.folder, figures, f"--files {options.files}{limit}")
        return
    if options.folder is not None:
        files = real_documents.files_of(options.folder, options.files, options.most_bytes)
        figures = real_documents.measure(files, list(real_documents.STAND_INS), options.processes, options.log)
        record_real(options.folder, options.when, figures, RESULTS / f"documents/{options.record}.json")
        return
    if options.run is None or options.src is None:
        parser.error("give a folder of real documents, or --run and --src")
    lines = [line.strip() for line in read_lines(options.src)]
    n_files = options.files or FILES
    figures = measure(options.run, lines, n_files, options.beam_size)
    command = f"python -m benchmarks.documents --run RUN --src SRC --files {n_files}"
    command += "" if options.beam_size is None else f" --beam-size {options.beam_size}"
    save("documents", figures, command, PACKAGES)


PACKAGES = ["torch", "lxml", "markdown-it-py", "python-docx", "python-pptx", "odfpy", "polib"]


def record_real(folder: Path, when: str, figures: dict[str, Any], path: Path) -> None:
    """Write the figures of a folder's real documents into the record at ``path``; its other entries stay."""
    before = json.loads(path.read_text()) if path.exists() else {}
    sources = folder / "sources.json"
    inputs = json.loads(sources.read_text()) if sources.exists() else {"folder": folder.name}
    record = before | {
        "command": "python -m benchmarks.documents FOLDER --as before|after", "machine": machine(),
        "versions": {name: version(name) for name in [*PACKAGES, "html5lib", "mdit-py-plugins", "srt", "webvtt-py"]},
        "inputs": inputs, when: {"date": time.strftime("%Y-%m-%d"), **figures},
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps({key: figures[key] for key in ("outcomes", "by_suffix", "files_by_kind_of_fault")}, indent=1))


def record_by_model(folder: Path, figures: dict[str, Any], options: str) -> None:
    """Write the figures of real documents that a model translated into ``results/documents/model.json``."""
    sources = folder / "sources.json"
    record = {
        "command": f"python -m benchmarks.documents FOLDER --model RUN {options}", "machine": machine(),
        "versions": {name: version(name) for name in [*PACKAGES, "html5lib", "mdit-py-plugins", "srt", "webvtt-py"]},
        "inputs": json.loads(sources.read_text()) if sources.exists() else {"folder": folder.name},
        "date": time.strftime("%Y-%m-%d"), **figures,
    }  # fmt: skip
    path = RESULTS / "documents/model.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps({key: figures[key] for key in ("outcomes", "by_suffix", "files_by_kind_of_fault")}, indent=1))


if __name__ == "__main__":
    main()
