"""Every reader of files that somebody else wrote: sound files to begin with, how they are changed, and what must hold.

``READERS`` has one entry for each. What a format or toolkit declares is compared with it by
``test_mutated_files.py``, so a reader that is added later fails a test until it stands here.
"""

from __future__ import annotations

import functools
import gzip
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import mutate
import zstandard
from mutate import BYTES, Mutator

from dragoman.config import Config
from dragoman.data.encodings import recognise
from dragoman.data.texts import languages_of, read_one, texts_named
from dragoman.documents.document import DocumentInfo
from dragoman.documents.translate import open_document
from dragoman.errors import DataError
from dragoman.parsing.trees import read_trees, write_tree
from dragoman.serving.keys import Keys
from dragoman.translation.assemble import Translation
from dragoman.translation.keeping.glossary import Glossary


@dataclass(frozen=True)
class Models:
    """A small trained run, and its model in the formats of other programs."""

    run: Path
    folders: dict[str, Path]  # by the name of the toolkit


Read = Callable[[Models | None, bytes, Path], str]
"""Reads a mutated file, given a scratch folder; returns "" or the damage that was accepted silently.

It raises whatever the reader raises.
"""


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A reader of foreign bytes, with the sound files whose mutations it must refuse or read."""

    name: str
    sound: Callable[[Models | None], Sequence[bytes]]
    read: Read
    mutators: Sequence[Mutator] = field(default_factory=lambda: BYTES)
    lost: Callable[[bytes], str] = lambda content: ""
    """Return what a file lacks that was damaged in its bytes alone and was read; "" if nothing."""
    quick: int  # mutations in ``make test``


# --- documents --------------------------------------------------------------------------------------------------------

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
_P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
_DOCX = {
    "[Content_Types].xml": b'<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
    "word/document.xml": (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<w:document {_W} {_A}><w:body><w:p><w:pPr><w:jc w:val="left"/></w:pPr>'
        "<w:r><w:rPr><w:b/></w:rPr><w:t>The dog</w:t></w:r><w:r><w:t xml:space='preserve'> sees &amp; the cat.</w:t><w:br/>"
        "<w:t>Next</w:t></w:r><w:hyperlink><w:r><w:t>here</w:t></w:r></w:hyperlink></w:p><w:tbl><w:tr><w:tc><w:p><w:r>"
        "<w:t>cell</w:t><w:noBreakHyphen/><w:tab/></w:r></w:p></w:tc></w:tr></w:tbl><!-- c --><w:p/></w:body></w:document>"
    ).encode(),
    "word/header1.xml": f"<w:hdr {_W}><w:p><w:r><w:t>head</w:t></w:r></w:p></w:hdr>".encode(),
    "word/media/image1.png": bytes(range(256)) * 3,
    "word/empty/": b"",
}
_PPTX = {
    "ppt/presentation.xml": f"<p:presentation {_P}/>".encode(),
    "ppt/slides/slide1.xml": (
        f"<p:sld {_P} {_A}><p:cSld><a:p><a:r><a:rPr lang='en'/><a:t>A title</a:t></a:r><a:br/><a:r><a:t>two</a:t></a:r>"
        "<a:endParaRPr/></a:p></p:cSld></p:sld>"
    ).encode(),
    "ppt/media/a.bin": b"\0" * 700,
}
_ODT = {
    "mimetype": b"application/vnd.oasis.opendocument.text",
    "content.xml": (
        b'<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        b'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><text:h>Head</text:h><text:p>The <text:span '
        b'text:style-name="T1">dog</text:span><text:s/>runs<text:line-break/>far</text:p></office:document-content>'
    ),
    "styles.xml": b'<office:s xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"/>',
}
_PO = (
    b'# c\nmsgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n#, fuzzy\nmsgctxt "m"\nmsgid "The \\"dog\\"\\n"\n'
    b'"runs\\n"\nmsgstr ""\n\nmsgid "cat"\nmsgid_plural "%d cats"\nmsgstr[0] ""\nmsgstr[1] ""\n\nmsgid "b"\nmsgstr "B"\n'
)
_XLF12 = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file '
    b'source-language="en" target-language="de" original="a"><body><trans-unit id="1"><source>The <g id="1">dog</g> runs'
    b'<x id="2"/></source><target state="new"/></trans-unit><trans-unit id="2" translate="no"><source>a</source></trans-unit>'
    b"<trans-unit id='3'><source>b</source><target>B</target></trans-unit></body></file></xliff>"
)
_XLF2 = (
    b'<xliff version="2.0" srcLang="en" xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f"><unit id="1"><segment>'
    b'<source>The <pc id="1">dog</pc></source></segment><segment state="initial"><source>cat</source><target>x</target>'
    b"</segment></unit></file></xliff>"
)
_HTML = (
    b'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>A title</title><script>x < 1</script></head><body>'
    b'<p>The <b>dog</b> &amp; cat<br>runs <a href="x" title="a tip">here</a>.</p><pre>code</pre><img alt="a picture">'
    b"<td>&nbsp;</td><!-- c --><p translate='no'>kept</p><ul><li>one<li>two</ul></body></html>"
)
_MD = (
    b'---\ntitle: a\n---\n# A title #\n\nSome *text* with **bold** and `code`, a [link](http://x.y "t").\n\n> quoted\n> two\n\n'
    b"- item\n  1. inner\n\n| a | b |\n|---|:-:|\n| one \\| two | 3 |\n\n```py\ncode\n```\n\n<p>html</p>\n\n[ref]: http://x.y\n"
)
_MDX = (
    b"import A from 'a'\n\n# The {x} dog\n\n<A title=\"the cat\" b={{c: 1}}>\n  The *dog* <b>sings</b>.\n</A>\n\n{/* a note */}\n\n"
    b":::note The book\n\nA cat sleeps.\n\n:::\n\nexport const a = 1\n"
)
_SRT = (
    b"1\r\n00:00:01,000 --> 00:00:02,000\r\nthe <i>cat</i> sees\r\nthe dog\r\n\r\n2\r\n00:00:02,100 --> 00:00:05,000\r\n"
    b"{\\an8}in the house.\r\n- No.\r\n\r\n3\r\n00:00:06,000 --> 00:00:07,000\r\n\r\n"
)
_VTT = (
    b"WEBVTT\n\nSTYLE\n::cue {}\n\nNOTE a note\n\nid\n00:01.000 --> 00:02.000 align:start\n<v Ann>the &amp; cat\n<00:01.500>sees"
    b"\n\n00:03.000 --> 00:04.000\n- me.\n"
)
_ASS = (
    b"[Script Info]\r\nTitle: a film\r\n\r\n[Events]\r\nFormat: Layer, Start, End, Style, Text\r\n"
    b"Dialogue: 0,0:00:01.00,0:00:02.00,Default,{\\an8}the {\\i1}dog{\\i0}, you see,\\Nsleeps\r\n"
    b"Comment: 0,0:00:01.00,0:00:02.00,Default,a note\r\nDialogue: 0,0:00:02.00,0:00:03.00,Sign,{\\p1}m 0 0{\\p0}a cat\r\n"
)
_TTML = (
    b'<?xml version="1.0" encoding="utf-8"?>\n<tt xmlns="http://www.w3.org/ns/ttml"><body><div><p begin="1s" end="2s">'
    b'the <span style="i">dog</span> &amp;<br/>the cat</p>\n<p begin="00:00:02.000" dur="1s">sleep.</p></div></body></tt>\n'
)
_SBV = b"0:00:01.000,0:00:02.000\r\nthe dog\r\n- No.\r\n\r\n0:00:02.000,0:00:03.000\r\nsleeps\r\n"
_CSV = b'a,text\r\n1,"the dog, ""here"""\r\n2,a cat\r\n3,"two\nlines"\r\n'
_TSV = b"a\ttext\n1\tthe dog\n2\ta cat\n\n3\t\n"
_TXT = "one line\n\n two \r\n12.5\nthe 🙂 last\ufeff".encode()

_XML_TOKENS = [
    "<b>",
    "</b>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?",
    "?>",
    "&amp;",
    "&#x0;",
    "<",
    ">",
    "xmlns:a='b'",
    "/>",
]
DOCUMENTS: dict[str, tuple[Sequence[bytes], Sequence[Mutator]]] = {
    ".txt": ([_TXT], mutate.of_text(["\r\n"])),
    ".md": ([_MD], mutate.of_text(["```", "*", "_", "[", "](", "> ", "- ", "|", "---\n", "    ", "<!--", "# ", "\\", "![", "[^1]:"])),
    ".mdx": ([_MDX], mutate.of_text(["{", "}", "{/*", "*/}", "<A>", "</A>", "<A b={", "import ", "export ", ":::", "`", "\n\n"])),
    ".html": ([_HTML], [*mutate.of_text(_XML_TOKENS), mutate.of_xml, mutate.of_xml]),
    ".srt": ([_SRT], mutate.of_text(["-->", "00:00:01,000 --> 00:00:02,000\n", "<i>", "{\\", "1\n", ":", ","])),
    ".ass": ([_ASS], mutate.of_text(["Dialogue: ", "[Events]", "Format: Text", "{\\i1}", "{\\p1}", "\\N", ",", "{", "}"])),
    ".ttml": ([_TTML], mutate.of_text(["<p>", "</p>", "<br/>", "begin='1s'", "<span>", "&amp;", "<metadata>", "<", ">"])),
    ".sbv": ([_SBV], mutate.of_text(["0:00:01.000,0:00:02.000\n", "[br]", "\n", ":", ",", "- "])),
    ".vtt": ([_VTT], mutate.of_text(["-->", "00:01.000 --> 00:02.000\n", "<v>", "NOTE", "WEBVTT", "<c.x>", ":", "."])),
    ".csv": ([_CSV], mutate.of_text([",", ";", '"', '""', "\r\n"])),
    ".tsv": ([_TSV], mutate.of_text(["\t", '"', "\r\n"])),
    ".po": ([_PO], mutate.of_text(["msgid", "msgstr", "msgstr[9]", '"', '""', "\\", "\\x", "#~ ", "#, fuzzy", "charset=", "msgctxt "])),
    ".xlf": ([_XLF12, _XLF2], [mutate.of_xml, mutate.of_xml, mutate.of_xml, *mutate.of_text(_XML_TOKENS)]),
    ".docx": ([mutate.zipped(_DOCX), mutate.zipped(_DOCX, 14)], mutate.of_zip(mutate.of_xml) * 2),
    ".pptx": ([mutate.zipped(_PPTX)], mutate.of_zip(mutate.of_xml) * 2),
    ".odt": ([mutate.zipped(_ODT)], mutate.of_zip(mutate.of_xml) * 2),
}  # fmt: skip
"""Sound files of each document format and its mutators; the suffixes of ``ALIASES`` name the same formats."""
ALIASES = {
    ".markdown": ".md", ".htm": ".html", ".xhtml": ".html", ".pot": ".po", ".xliff": ".xlf", ".ssa": ".ass",
    ".dfxp": ".ttml", **dict.fromkeys([".docm", ".dotx", ".dotm"], ".docx"),
    **dict.fromkeys([".ott", ".odp", ".otp"], ".odt"),
    **dict.fromkeys([".pptm", ".potx", ".potm", ".ppsx", ".ppsm"], ".pptx"),
}  # fmt: skip
_COLUMNS = {".csv": ("text",), ".tsv": ("text",)}


def _document(suffix: str, _: Models | None, content: bytes, folder: Path) -> str:
    """Read a document, write it without and with translations, and read what was written."""
    info = DocumentInfo(f"a{suffix}", "en", "de", _COLUMNS.get(suffix, ()))
    opened = open_document(content, info)
    texts = opened.texts
    unchanged, report = opened.finish({})
    encoding = recognise(content, "en") if any(note.kind == "input" for note in report.notes) else None
    if encoding is not None:  # which is named, and the file written in UTF-8
        content = content.decode(encoding.codec).encode()
    if suffix in PACKAGES:
        if _texts_of(unchanged) != _texts_of(content):
            return "written without translations its members are others"
    elif unchanged != content and suffix not in (".xlf", ".po"):
        # an .xlf gets its target language; a message of several lines of a .po keeps those without a translation
        return "written without translations it has other bytes"
    translated, _ = opened.finish({text: Translation(text.upper(), 0.0) for text in texts})
    try:
        open_document(translated, info)
    except DataError as error:
        return f"its translation cannot be read again: {error}"
    return ""


PACKAGES = (".docx", ".pptx", ".odt")


def _texts_of(content: bytes) -> dict[str, bytes]:
    """Return the members of an archive; of XML the text alone, as runs are cut into smaller runs."""
    return {
        name: re.sub(rb"<[^>]*>|\s", b"", body) if name.endswith(".xml") else body
        for name, body in mutate.unzipped(content).items()
    }


def _lost(suffix: str, content: bytes) -> str:
    """Return the damage of an archive that was read though a checksum or a record of it is wrong."""
    try:
        now = mutate.unzipped(content)
    except Exception as error:  # of any kind: the archive is damaged
        return f"a member cannot be unpacked ({type(error).__name__})"
    return "" if now == mutate.unzipped(DOCUMENTS[suffix][0][0]) else "its members are others"


# --- texts to train on ------------------------------------------------------------------------------------------------

_TMX = (
    b'<?xml version="1.0"?>\n<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>The <hi>dog</hi>'
    b'<bpt i="1">x</bpt></seg></tuv><tuv xml:lang="de"><seg>Der Hund</seg></tuv></tu><tu><tuv xml:lang="en-US"><seg>cat</seg>'
    b"</tuv><tuv xml:lang='de'><seg>Katze</seg></tuv></tu></body></tmx>"
)
_TREES = b"(TOP (S (NP (DT the) (NN dog)) (VP (VBZ runs)) (. .)))\n( (S (NP-SBJ (-NONE- *)) (VP (VB go))))\n"
_LINES = b"the dog runs\na cat\n\nthe end\n"
PAIRED = ("", ".gz", ".zst")
"""Endings of two text files, one for each side."""


def _texts(ending: str, sound: Sequence[bytes], _: Models | None, content: bytes, folder: Path) -> str:
    """Read parallel text; what its container holds a checksum of must be the sound text."""
    if ending in PAIRED:
        paths = [folder / f"t.en{ending}", folder / f"t.de{ending}"]
        paths[0].write_bytes(content)
        paths[1].write_bytes(sound[0])
    else:
        paths = [folder / f"t{ending}"]
        paths[0].write_bytes(content)
    texts = texts_named(paths)
    languages_of(texts)
    pairs = [pair for text in texts for pair in read_one(text)]
    if ending in (".gz", ".zst") and [src for src, _ in pairs] != _LINES.decode().split("\n")[:-1]:
        return "it gives other lines"
    return ""


def _trees(_: Models | None, content: bytes, folder: Path) -> str:
    path = folder / "t.trees"
    path.write_bytes(content)
    for tree in read_trees(path):
        write_tree(tree)
    return ""


# --- settings and small files -----------------------------------------------------------------------------------------


def _glossary(_: Models | None, content: bytes, folder: Path) -> str:
    path = folder / "terms.tsv"
    path.write_bytes(content)
    Glossary.load(path).find("the dog runs")
    return ""


def _keys(_: Models | None, content: bytes, folder: Path) -> str:
    path = folder / "keys"
    path.write_bytes(content)
    Keys.load(path).owner("x" * 43)
    return ""


def _config(_: Models | None, content: bytes, folder: Path) -> str:
    path = folder / "config.yaml"
    path.write_bytes(content)
    Config.from_yaml(path).to_yaml()
    return ""


def small_readers() -> Iterator[Reader]:
    """Yield the readers that need no model."""
    for suffix, (sound, mutators) in DOCUMENTS.items():
        splices = [mutate.spliced([*sound, *(other[0][0] for other in DOCUMENTS.values())])]
        yield Reader(
            name=suffix, sound=functools.partial(_same, sound), read=functools.partial(_document, suffix),
            mutators=[*mutators, *BYTES, *splices], quick=30,
            **({"lost": functools.partial(_lost, suffix)} if suffix in PACKAGES else {}),  # type: ignore[arg-type]
        )  # fmt: skip
    forms = {"": _LINES, ".gz": gzip.compress(_LINES, mtime=0),
             ".zst": zstandard.ZstdCompressor(write_checksum=True).compress(_LINES),
             ".tsv": b"en\tde\nthe dog\tder Hund\n\na\tb\n", ".csv": b'en,de\nthe dog,"der ""Hund"""\na,b\n', ".tmx": _TMX}  # fmt: skip
    for ending, content in forms.items():
        mutators = BYTES
        if ending in (".tsv", ".csv"):
            mutators = [*BYTES, *mutate.of_text([",", "\t", '"', "\r\n"])]
        elif ending == ".tmx":
            mutators = [*BYTES, mutate.of_xml, mutate.of_xml, *mutate.of_text(_XML_TOKENS)]
        read = functools.partial(_texts, ending, [content])
        yield Reader(
            name=f"text{ending}", sound=functools.partial(_same, [content]), read=read, mutators=mutators, quick=30
        )
    yield Reader(
        name="trees",
        quick=30,
        sound=functools.partial(_same, [_TREES]),
        read=_trees,
        mutators=[*BYTES, *mutate.of_text(["(", ")", " ("])],
    )
    yield Reader(name="glossary", quick=30, sound=functools.partial(_same, [b"dog\tHund\nthe cat\tdie Katze\nNASA\n"]), read=_glossary,
                 mutators=[*BYTES, *mutate.of_text(["\t"])])  # fmt: skip
    yield Reader(name="keys", quick=30, sound=functools.partial(_same, [f"ann {'0' * 64}\nbob {'a' * 64}\n# c\n".encode()]), read=_keys,
                 mutators=[*BYTES, *mutate.of_text(["#", " "])])  # fmt: skip


def _same(sound: Sequence[bytes], _: Models | None) -> Sequence[bytes]:
    return sound


def mutations(reader: Reader, models: Models | None, n: int, seed: int) -> Iterator[tuple[Mutator, bytes]]:
    """Yield ``n`` mutated files, each with its mutator; the same for the same seed."""
    sound = reader.sound(models)
    for i in range(n):
        chance = random.Random(f"{reader.name} {seed} {i}")
        mutator = chance.choice(list(reader.mutators))
        try:
            yield mutator, mutator(chance.choice(sound), chance)
        except (UnicodeDecodeError, ValueError):  # a mutator of another kind of file, such as text of a packed one
            yield mutate.flipped, mutate.flipped(chance.choice(sound), chance)
