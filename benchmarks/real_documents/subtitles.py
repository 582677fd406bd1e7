"""Judges of subtitles: srt, webvtt-py, pysubs2 and lxml; chardet where a file does not say its encoding.

Words may move between captions of one sentence, and nowhere else. So the words between two full stops, those of each
voice and those of each line of a dialogue must be the same afterwards.
"""

from __future__ import annotations

import html
import io
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import chardet
import pysubs2
import srt
import webvtt
from lxml import etree

from benchmarks.real_documents.judging import BY_MODEL, WORD, Block, Fault, UnreadableError, words_of

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe\0\0", "utf-32-le"), (b"\0\0\xfe\xff", "utf-32-be"),
         (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))  # fmt: skip
_TAG = re.compile(r"(<rt>[^<]*(?:</rt>)?|<[A-Za-z][^<>]*(?:>|\Z)|</[^<>]*>|<>|<\d[\d:.]*>|\{\\[^}]*\})")
_ENDED = re.compile(r"[.!?…:。！？♪\])][\"'”’»)\]]*$")
_TURN = re.compile(r"^\s*(?:[-–—]\s*\S|>>)")
_LABEL = re.compile(r"^\s*[-–—]?\s*([A-ZА-Я][A-ZА-Я .'#\d]{1,30}):")


def decoded(data: bytes) -> str:
    """Return a file as text, with LF at the ends of lines."""
    for bom, name in _BOMS:
        if data.startswith(bom):
            return _plain_ends(data[len(bom) :].decode(name, "replace"))
    try:
        return _plain_ends(data.decode("utf-8"))
    except UnicodeDecodeError:
        encoding = chardet.detect(data)["encoding"] or "latin-1"
        return _plain_ends(data.decode(encoding, "replace"))


def _plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def subrip(data: bytes) -> list[Block]:
    """Read cues of SubRip."""
    try:
        cues = list(srt.parse(decoded(data), ignore_errors=True))
    except (srt.SRTParseError, ValueError) as error:
        raise UnreadableError(str(error)) from None
    return [_cue(f"{cue.start} {cue.end} {cue.proprietary}", cue.content) for cue in cues]


def webvtt_cues(data: bytes) -> list[Block]:
    """Read cues of WebVTT."""
    try:
        cues: Any = webvtt.from_string(decoded(data))
    except (webvtt.errors.MalformedFileError, webvtt.errors.MalformedCaptionError) as error:
        raise UnreadableError(str(error)) from None
    return [_cue(f"{cue.identifier} {cue.start} {cue.end}", cue.raw_text, html.unescape) for cue in cues]


def sbv(data: bytes) -> list[Block]:
    """Read cues of YouTube's captions; for a program a line of spaces ends none, as it does for webvtt-py."""
    text = re.sub(r"^[ \t]+$", "\u200b", decoded(data), flags=re.MULTILINE)
    try:
        cues: Any = webvtt.from_buffer(io.BytesIO(text.encode()), format="sbv")
    except (webvtt.errors.MalformedFileError, webvtt.errors.MalformedCaptionError) as error:
        raise UnreadableError(str(error)) from None
    return [_cue(f"{cue.start} {cue.end}", cue.raw_text) for cue in cues]


def ass(data: bytes) -> list[Block]:
    """Read events, and what else a script has, which must stay."""
    try:
        script = pysubs2.SSAFile.from_string(decoded(data))
    except (pysubs2.exceptions.Pysubs2Error, ValueError, KeyError) as error:
        raise UnreadableError(f"{type(error).__name__}: {error}") from None
    blocks = [
        Block("info", marks=[f"{key}: {value}" for key, value in script.info.items()], is_text=False),
        Block("styles", marks=[f"{key} {style}" for key, style in script.styles.items()], is_text=False),
    ]
    for event in script:
        name = f"{event.start} {event.end} {event.style} {event.name} {event.effect} {event.layer} {event.type}"
        if event.is_comment or event.is_drawing:
            blocks.append(Block(name, [("", event.text)], is_text=False))
        else:
            blocks.append(_cue(name, event.text.replace("\\N", "\n").replace("\\n", "\n").replace("\\h", "\u00a0")))
    return blocks


def ttml(data: bytes) -> list[Block]:
    """Read paragraphs and their spans; all other elements must stay."""
    try:
        tree = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise UnreadableError(str(error)) from None
    blocks = []
    ruby = {style.get(_XML_ID): style.get(_RUBY) for style in tree.iter() if style.get(_RUBY) and style.get(_XML_ID)}
    for element in tree.iter():
        if not isinstance(element.tag, str):
            continue
        name = etree.QName(element).localname
        around = [etree.QName(up).localname for up in element.iterancestors() if isinstance(up.tag, str)]
        if "p" in around and "body" in around:
            continue
        if name == "p" and "body" in around:
            block = Block(f"p {sorted(element.attrib.items())}", is_cue=True)
            _collect(element, block, ruby)
            blocks.append(block)
        else:
            text = " ".join((element.text or "").split())
            blocks.append(Block(f"{name} {sorted(element.attrib.items())} {text}", marks=[name], is_text=False))
    return blocks


_RUBY = "{http://www.w3.org/ns/ttml#styling}ruby"
_XML_ID = "{http://www.w3.org/XML/1998/namespace}id"


def _collect(element: Any, block: Block, ruby: dict[str, str]) -> None:
    block.add("", " ".join(f".{element.text or ''}.".split())[1:-1])
    for child in element:
        name = etree.QName(child).localname if isinstance(child.tag, str) else "comment"
        block.marks += [f"{name} {sorted(child.attrib.items())}"] if name != "br" else []
        if name in ("metadata", "comment", "set"):
            block.marks.append("".join(child.itertext()) if name != "comment" else str(child.text))
        elif (child.get(_RUBY) or ruby.get(child.get("style", ""))) in ("text", "textContainer", "delimiter"):
            block.marks.append(f"reading {' '.join(child.itertext()).split()}")
        else:
            block.add("", "\n" if name == "br" else "")
            _collect(child, block, ruby)
        block.add("", " ".join(f".{child.tail or ''}.".split())[1:-1])


def _cue(name: str, text: str, unescaped: Callable[[str], str] = str) -> Block:
    block = Block(name, is_cue=True)
    for part in _TAG.split(text):
        if _TAG.fullmatch(part):  # a style around each line is as often there as there are lines
            block.marks += [part] if part not in block.marks else []
        else:
            block.add("", unescaped(part))
    block.marks += [end for end in map(_end_of, block.marks) if end and end not in block.marks]
    return block


def _end_of(mark: str) -> str:
    """Return the tag that ends what another one begins: the end of a caption may stand for it."""
    if match := re.fullmatch(r"<([a-z]+)\b[^<>/]*>", mark):
        return f"</{match[1]}>" if match[1] not in ("v", "rt", "br") else ""
    names = [
        f"\\{name}0" if name in "ibus" else f"\\{name}" for name, value in _OVERRIDE.findall(mark) if value.strip("0")
    ]
    return "{" + "".join(names).replace("\\c", "\\1c") + "}" if names and mark.startswith("{\\") else ""


READERS = {".srt": subrip, ".vtt": webvtt_cues, ".sbv": sbv, ".ass": ass, ".ssa": ass, ".ttml": ttml, ".dfxp": ttml}


def faults(source: bytes, result: bytes, mode: str, named: list[str], suffix: str) -> list[Fault]:
    """Return what only subtitles have: words that left their sentence, voice or line, and lines that are gone."""
    cues, translated = ([block for block in READERS[Path(suffix).suffix or suffix](data) if block.is_cue]
                        for data in (source, result))  # fmt: skip
    if len(cues) != len(translated):
        return []  # told by the comparison of structures
    return [
        *_sentences(cues, translated, mode),
        *_dialogue(cues, translated, mode),
        *_voices(source, result, mode, suffix),
        *_styles(source, result, mode, suffix),
    ]


def _raw(block: Block) -> str:
    return "".join(text for _, text in block.pieces)


def _sentences(cues: Sequence[Block], translated: Sequence[Block], mode: str) -> list[Fault]:
    """Compare the words between two full stops."""
    found, before, after, first = [], Counter[str](), Counter[str](), ""
    shown, repeats = set[str](), False  # lines of the caption before; captions that roll up show one again
    for number, (cue, other) in enumerate(zip(cues, translated, strict=True)):
        first = first or cue.name
        lines_of_cue = {line.strip() for line in _raw(cue).split("\n")} - {""}
        repeats, shown = repeats or bool(shown & lines_of_cue), lines_of_cue
        before.update(_words(_raw(cue)))
        after.update(_words(_raw(other)))
        ended = _ENDED.search(cue.text) or not cue.text or number + 1 == len(cues)
        if ended:
            if before != after and mode not in BY_MODEL and not (repeats and mode == "reversed"):
                lost, new = list((before - after).elements()), list((after - before).elements())
                found.append(Fault("sentence", first, f"lost {lost[:5]}, new {new[:5]} up to {cue.text[-50:]!r}"))
            before, after, first, repeats = Counter(), Counter(), "", False
        if WORD.search(cue.text) and not WORD.search(other.text):
            found.append(Fault("emptied", cue.name, repr(cue.text[:80])))
        lines, new_lines = (len(_raw(block).strip().split("\n")) for block in (cue, other))
        if (
            mode == "letters"
            and lines != new_lines
            and len(other.text.split()) >= lines
            and "\n\n" not in _raw(cue).strip()
        ):
            found.append(Fault("lines", cue.name, f"{lines} lines became {new_lines}: {_raw(other)[:60]!r}"))
    return found


def _words(text: str) -> list[str]:
    """Return the words of a text, and the characters of those that have no spaces between them."""
    return [part for word in words_of(text) for part in (list(word) if max(word) >= "\u0e00" else [word])]


def _dialogue(cues: Sequence[Block], translated: Sequence[Block], mode: str) -> list[Fault]:
    """Compare the words of each speaker in a caption of two, and those of labels such as ``JOHN:``."""
    found = []
    may_come_from_before = False
    marks, new_marks = Counter[str](), Counter[str]()  # since the last full stop; a word may take its bracket along
    for cue, other in zip(cues, translated, strict=True):
        own, new = _turns(_raw(cue)), _turns(_raw(other))
        whole = own[
            may_come_from_before and not _TURN.match(own[0]) : len(own) if _ENDED.search(own[-1].strip()) else -1
        ]
        is_dialogue = len(own) > 1 or mode == "letters"
        if is_dialogue and (
            len(own) != len(new)
            or (
                mode not in BY_MODEL and any(words_of(turn) not in [words_of(other) for other in new] for turn in whole)
            )
        ):
            found.append(Fault("speakers", cue.name, f"{own} became {new}"))
        may_come_from_before = not _ENDED.search(own[-1].strip())
        for line, changed in zip(_raw(cue).split("\n"), _raw(other).split("\n"), strict=False):
            label = _LABEL.match(line)
            if mode not in BY_MODEL and label and words_of(label[0]) != words_of(changed.partition(":")[0]):
                found.append(Fault("speakers", cue.name, f"{line!r} became {changed!r}"))
        marks.update(re.findall(r"[♪♫\[\]]", _raw(cue)))
        new_marks.update(re.findall(r"[♪♫\[\]]", _raw(other)))
        if _ENDED.search(cue.text) or not cue.text:
            if marks != new_marks:
                found.append(Fault("brackets", cue.name, f"{cue.text[:60]!r} became {other.text[:60]!r}"))
            marks, new_marks = Counter(), Counter()
    return found


def _turns(text: str) -> list[str]:
    """Return the turns of a caption: a line with a dash begins one."""
    turns: list[str] = []
    for line in text.strip().split("\n"):
        if turns and not _TURN.match(line):
            turns[-1] += f" {line}"
        else:
            turns.append(line)
    return turns


def _voices(source: bytes, result: bytes, mode: str, suffix: str) -> list[Fault]:
    """Compare the words of each voice of WebVTT."""
    if not suffix.endswith(".vtt"):
        return []
    own, new = _by_voice(decoded(source)), _by_voice(decoded(result))
    if mode in BY_MODEL:
        return [Fault("speakers", voice, "has no words") for voice in own if own[voice] and not new.get(voice)]
    return [
        Fault("speakers", voice, f"{own[voice] - new[voice]} in {mode}") for voice in own if own[voice] != new[voice]
    ]


def _bodies(text: str) -> list[str]:
    """Return the source of each caption of SubRip or WebVTT."""
    blocks = [block.partition("-->") for block in re.split(r"\n\n+", text)]
    return [behind.partition("\n")[2] for _, arrow, behind in blocks if arrow]


def _by_voice(text: str) -> dict[str, Counter[str]]:
    words: dict[str, Counter[str]] = {}
    for body in _bodies(text):
        voice = ""
        for part in re.split(r"(</?v[^>]*>)", body):
            if re.match(r"</?v", part):
                voice = part if part.startswith("<v") else ""
            elif voice:
                words.setdefault(voice, Counter()).update(words_of(html.unescape(_TAG.sub("", part))))
    return words


_STYLE = re.compile(r"(\{[^{}\r\n]*\}|</? ?[A-Za-z][^<>\r\n]*>|<\d[\d:.]*>)")
_OVERRIDE = re.compile(r"\\(\d?[a-z]+)(\([^()]*(?:\([^()]*\)[^()]*)*\)|&H[0-9A-Fa-f]*&?|[^\\{}]*)")
_STYLING = ("i", "b", "u", "s", "1c", "2c", "3c", "4c", "fs", "fn", "fscx", "fscy", "fsp", "bord", "shad", "alpha")


def _styles(source: bytes, result: bytes, mode: str, suffix: str) -> list[Fault]:
    """Compare the words of each style inside a caption: italics, colours, sizes."""
    is_sung = re.search(rb"<\d\d:\d", source)  # word by word: captions that roll up repeat such a line
    if mode in BY_MODEL or is_sung or not suffix.endswith((".ass", ".ssa", ".srt", ".vtt")):
        return []
    own, new = (by_style(data, suffix) for data in (source, result))
    return [
        Fault("styles", style, f"lost {list((own[style] - new[style]).elements())[:5]}, "
              f"new {list((new[style] - own[style]).elements())[:5]} in {mode}")
        for style in own if style and own[style] != new[style]
    ]  # fmt: skip


def by_style(data: bytes, suffix: str) -> dict[str, Counter[str]]:
    """Return the words in each style, "" for that of the whole caption; those sung word by word are left out."""
    words: dict[str, Counter[str]] = defaultdict(Counter)
    for text, usual in _captions(data, suffix):
        state = dict(usual)
        if re.search(r"\\[kK][of]?\d|<\d[\d:.]*>|\\p[1-9]|<rt>", text):
            continue
        opened: list[str] = []
        for part in _STYLE.split(text):
            if part.startswith("{"):
                _override(state, usual, part)
            elif _STYLE.fullmatch(part) and not part.startswith(("<v", "</v")):
                name = re.findall(r"\w+", part)[0]
                opened = [*opened, part] if part[1] != "/" else _without(opened, name)
            else:
                styled = {f"{name} {value}" for name, value in state.items() if usual.get(name, "0") != value}
                words[" ".join(sorted({*styled, *opened}))].update(_words(html.unescape(part)))
    return words


def _without(opened: list[str], name: str) -> list[str]:
    last = next((i for i in range(len(opened) - 1, -1, -1) if re.match(rf"<{re.escape(name)}\b", opened[i])), None)
    return opened if last is None else opened[:last] + opened[last + 1 :]


def _override(state: dict[str, str], usual: dict[str, str], block: str) -> None:
    """Change a style by a block such as ``{\\i1\\c&HFF&}``."""
    for name, value in _OVERRIDE.findall(block):
        name, value = "1c" if name == "c" else name, value.strip().strip("&H").upper()
        if name == "r":
            state.clear()
            state.update(usual)
        elif name in _STYLING and value:
            state[name] = value.lstrip("0") or "0"
        elif name in _STYLING:
            state.pop(name, None)
            state.update({name: usual[name]} if name in usual else {})


def _captions(data: bytes, suffix: str) -> list[tuple[str, dict[str, str]]]:
    """Return the source of each caption, and the style in which it begins."""
    text = decoded(data)
    if not suffix.endswith((".ass", ".ssa")):
        return [(body, {}) for body in _bodies(text)]
    script = pysubs2.SSAFile.from_string(text)
    return [
        (re.sub(r"\\[Nnh]", " ", event.text), _usual(script.styles.get(event.style)))
        for event in script if not event.is_comment
    ]  # fmt: skip


def _usual(style: pysubs2.SSAStyle | None) -> dict[str, str]:
    """Return what a style sets, as overrides write it."""
    if style is None:
        return {}
    colours = {"1c": style.primarycolor, "2c": style.secondarycolor, "3c": style.outlinecolor, "4c": style.backcolor}
    switches = {"i": style.italic, "b": style.bold, "u": style.underline, "s": style.strikeout}
    return {
        **{name: f"{colour.b:02X}{colour.g:02X}{colour.r:02X}".lstrip("0") or "0" for name, colour in colours.items()},
        **{name: str(int(bool(is_on))) for name, is_on in switches.items()},
        "fs": f"{style.fontsize:g}", "fn": style.fontname.upper(),
    }  # fmt: skip
