"""Encodings of text that is not UTF-8, recognised from the bytes.

    encoding = recognise(data, "zh")
    encoding.name                          # "GB18030"
    encoding.command(Path("train.zh"))     # "iconv -f GB18030 -t UTF-8 train.zh > train.zh.utf8"

``chardet`` ranks the encodings that decode the bytes. It knows how often letters follow each other in a language, but
not what words look like: a sign within a word, a capital behind a small letter or letters of two scripts in one word
speak for another encoding. A known language helps where a text is short.
"""

from __future__ import annotations

import codecs
import functools
import re
import unicodedata
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import as_command
from dragoman.languages.codes import primary

MARKS = ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"),
         (codecs.BOM_UTF16_BE, "utf-16"))  # fmt: skip
"""Byte order marks, and the codecs that read them. The first two begin like the others."""

_ESCAPES = ("unicode-escape", "raw-unicode-escape")
"""Codecs of Python for strings in source code; others write text so in no file."""

SAMPLE_BYTES = 2**17
"""Number of bytes outside ASCII lines by which an encoding is recognised."""

CLEAR = 1.02
"""Ratio of the scores of the best encoding and of the best one with another text, from which the best is certain."""
ODD = 0.35
"""Largest share of implausible characters in text."""
KNOWN_LANGUAGE = 1.3
"""Factor of the encodings in which a known language is written."""

NAMES = {
    **{f"cp{n}": f"CP{n}" for n in (866, 874, 932, 949, 950, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258)},
    **{f"iso8859-{n}": f"ISO-8859-{n}" for n in (1, 2, 5, 6, 7, 8, 9, 13, 15)},
    "big5hkscs": "BIG5-HKSCS", "euc_jis_2004": "EUC-JISX0213", "euc_jp": "EUC-JP", "euc_kr": "EUC-KR",
    "gb18030": "GB18030", "hz": "HZ", "iso2022_jp": "ISO-2022-JP", "iso2022_jp_2": "ISO-2022-JP-2",
    "iso2022_jp_2004": "ISO-2022-JP-3", "iso2022_jp_ext": "ISO-2022-JP", "iso2022_kr": "ISO-2022-KR",
    "koi8-r": "KOI8-R", "koi8-u": "KOI8-U", "mac-cyrillic": "MAC-CYRILLIC", "mac-roman": "MACINTOSH",
    "shift_jis_2004": "SHIFT_JISX0213", "tis-620": "TIS-620", "utf-16": "UTF-16", "utf-16-be": "UTF-16BE",
    "utf-16-le": "UTF-16LE", "utf-32": "UTF-32",
}  # fmt: skip
"""Names that the program iconv has for the encodings, by the names that Python has."""
RANKED = [codec for codec in NAMES if codec not in ("cp950", "euc_jp", "iso2022_jp") and not codec.startswith("utf")]
"""Encodings that chardet knows by these names."""
PLAINER = {
    "big5hkscs": ("cp950",), "euc_jis_2004": ("euc_jp",), "shift_jis_2004": ("cp932",), "iso2022_jp_2": ("iso2022_jp",),
    "iso2022_jp_2004": ("iso2022_jp", "iso2022_jp_2"), "iso2022_jp_ext": ("iso2022_jp", "iso2022_jp_2"),
}  # fmt: skip
"""Encodings that more programs know, which are taken where they decode the bytes too."""
RARE = {"mac-roman": 0.97, "mac-cyrillic": 0.95, "cp866": 0.95, "cp1258": 0.9, "cp1257": 0.94, "iso8859-13": 0.93,
        "cp1250": 0.99, "iso8859-2": 0.985, "cp1254": 0.985, "iso8859-9": 0.98}  # fmt: skip
"""Factors of encodings that fewer texts have."""
WRITTEN_IN = {
    "bs cs hr hu pl ro sk sl": "cp1250 iso8859-2",
    "et lt lv": "cp1257 iso8859-13",
    "be bg kk ky mk mn ru sr tg tt uk": "cp1251 iso8859-5 koi8-r koi8-u mac-cyrillic cp866",
    "az ku tr": "cp1254 iso8859-9",
    "ar fa ps ug ur": "cp1256 iso8859-6",
    "el": "cp1253 iso8859-7",
    "he yi": "cp1255 iso8859-8",
    "ja": "shift_jis_2004 euc_jis_2004 cp932 euc_jp",
    "ko": "cp949 euc_kr",
    "th": "tis-620 cp874",
    "vi": "cp1258",
    "zh": "gb18030 big5hkscs",
}
"""Encodings by the languages that are written in them; other languages are written in ``WESTERN``."""
WESTERN = "cp1252 iso8859-1 iso8859-15 mac-roman"
ALPHABETS = tuple(map(frozenset, (
    "áâèéêëîïôöûü", "àçèéíïòóúü·", "áčďéěíňóřšťúůýž", "âêîôûŵŷäëïöü", "æøåéóôòêäöü", "äöüßé", "áéíñóúüç", "äöõüšž",
    "äöåšžé", "àâæçèéêëîïôœùûüÿ", "áéíóú", "čćžšđ", "áéíóöőúüű", "áðéíóúýþæö", "àèéìíîòóùú", "ąčęėįšųūž",
    "āčēģīķļņšūžōŗ", "ċġħżàèìòù", "éëïóöüáíúè", "ąćęłńóśźż", "áâãàçéêíóôõúü", "ăâîșțşţ", "áäčďéíĺľňóôŕšťúýž",
    "çë", "çğıöşüâîûə", "ăâđêôơư",
)))  # fmt: skip
"""Letters outside ASCII that texts of a language in Latin script have together."""
SCRIPTS = {"LATIN", "CYRILLIC", "GREEK", "HEBREW", "ARABIC", "THAI"}
"""Scripts of which a word has one."""
JOINERS = "’‘'·-–—\u2010\u2011\xad\u200c\u200d"
"""Punctuation that may stand between letters."""
ODDEST = ("Cc", "Cn", "Co")
"""Categories of characters that text does not have: control characters, and numbers without a character."""
WITH_OTHERS = re.compile(r"[!-~]?[^\x00-\x7f\s]\S{0,99}+")
"""Characters outside ASCII with what may be odd about them: the one before, and up to 99 behind them in the word."""
CONTROL = re.compile(rb"[\x01-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")


def check_known(encoding: str) -> None:
    """Check the name of an encoding that a file declares.

    Raises:
        LookupError: It is that of no encoding of text files.
    """
    if codecs.lookup(encoding).name in _ESCAPES:
        raise LookupError(f"unknown encoding: {encoding}")


@dataclass(frozen=True)
class Encoding:
    """An encoding that decodes given bytes to plausible text."""

    codec: str  # name in Python
    certain: bool  # no other encoding is nearly as plausible

    @property
    def name(self) -> str:
        """The name in the program iconv."""
        return NAMES[self.codec]

    def command(self, path: Path) -> str:
        """Return the command that writes a file as UTF-8, next to it; a compressed file is unpacked."""
        file, out = as_command(path), as_command(Path(f"{path}.utf8"))
        unpack = {".gz": "gzip -dc", ".zst": "zstd -dc"}.get(path.suffix.lower())
        if unpack:
            return f"{unpack} {file} | iconv -f {self.name} -t UTF-8 > {out}"
        return f"iconv -f {self.name} -t UTF-8 {file} > {out}"


def marked(start: bytes) -> str | None:
    """Return the codec of UTF-16 or UTF-32 whose byte order mark a text begins with; None without one."""
    return next((codec for mark, codec in MARKS if start.startswith(mark)), None)


def recognise(data: bytes, lang: str | None = None) -> Encoding | None:
    """Return the encoding of text that is not UTF-8; None if none is plausible, or if the text is UTF-8.

    Damaged UTF-8 is UTF-8: more sequences of its bytes are characters of UTF-8 than are not.

    Args:
        data: The text, or some whole lines of it.
        lang: Its language, if it is known.
    """
    if codec := marked(data) or _without_mark(data):
        return Encoding(codec, True) if _decoded(data, codec) is not None else None
    if b"\0" in data or len(CONTROL.findall(data)) > len(data) / 1000 or _is_utf8(data):
        return None
    scores = _scores(data, lang)
    if not scores:
        return None
    (score, codec, text), *others = scores
    rival = next((other for other, _, other_text in others if other_text != text), 0.0)
    return Encoding(codec, score > CLEAR * rival)


def _without_mark(data: bytes) -> str | None:
    """Return the order of UTF-16 without a mark, by the zeros next to ASCII; None if the bytes are none."""
    if len(data) % 2 or data.count(0) <= len(data) / 800:  # too few for the share below
        return None
    shares = {}
    for codec, low, high in (("utf-16-le", data[::2], data[1::2]), ("utf-16-be", data[1::2], data[::2])):
        shares[sum(not h and (0x20 <= c < 0x7F or c in b"\t\n\r") for c, h in zip(low, high, strict=True))] = codec
    text = _decoded(data, shares[max(shares)])
    if text is None or max(shares) < len(text) / 200 or any(_category(c) in ODDEST for c in text if c not in "\t\n\r"):
        return None
    return shares[max(shares)]


def _is_utf8(data: bytes) -> bool:
    """True if bytes are UTF-8, or UTF-8 with some bad bytes, and not text whose bytes all are ASCII by escapes."""
    text = data.decode("utf-8", "surrogateescape")
    if text.isascii():
        return b"\x1b" not in data
    bad = sum("\udc80" <= character <= "\udcff" for character in text)
    return sum(not character.isascii() for character in text) > 2 * bad


def _decoded(data: bytes, codec: str) -> str | None:
    """Return the text of bytes; None if they are not in the encoding."""
    try:
        return data.decode(codec)
    except UnicodeError:
        return None


def _scores(data: bytes, lang: str | None) -> list[tuple[float, str, str]]:
    """Return score, codec and text of each encoding in which the bytes are plausible text, the best first."""
    import chardet  # imported here, because most text is UTF-8

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that its own default is not among the candidates
        ranked = chardet.detect_all(
            data, ignore_threshold=True, compat_names=False, include_encodings=RANKED, max_bytes=SAMPLE_BYTES
        )
    expected = _expected(lang)
    scores = []
    for result in ranked:
        codec = str(result["encoding"])
        if codec not in NAMES:
            continue
        codec = next((name for name in PLAINER.get(codec, ()) if _decoded(data, name) is not None), codec)
        text = _decoded(data, codec)
        if text is None or (share := odd_share(text)) > ODD:
            continue
        share = 1 - (1 - share) * (0.3 + 0.7 * alphabet_share(text) ** 2)
        factor = RARE.get(codec, 1.0) * (KNOWN_LANGUAGE if codec in expected else 1.0)
        scores.append((result["confidence"] * factor * (1 - share), codec, text))
    return sorted(scores, key=lambda score: -score[0])


def _expected(lang: str | None) -> list[str]:
    """Return the encodings in which a language is written, [] for no language."""
    if not lang:
        return []
    code = primary(lang)
    return next((names for langs, names in WRITTEN_IN.items() if code in langs.split()), WESTERN).split()


def odd_share(text: str) -> float:
    """Return the share of implausible characters among those outside ASCII, in the first 2,000 words that have some."""
    odd = total = 0
    for number, word in enumerate(WITH_OTHERS.finditer(text)):
        if number == 2000:
            break
        total += sum(not character.isascii() for character in word[0])
        odd += _odd_characters(word[0])
    return odd / total if total else 0.0


def alphabet_share(text: str) -> float:
    """Return the share of the Latin letters outside ASCII that one language has; 1 for text without any."""
    letters = Counter(c for c in text[:20_000].lower() if not c.isascii() and _category(c)[0] == "L")
    latin = {letter: n for letter, n in letters.items() if _script(letter) == "LATIN"}
    if not latin:
        return 1.0
    return max(sum(latin.get(letter, 0) for letter in alphabet) for alphabet in ALPHABETS) / sum(latin.values())


def _odd_characters(word: str) -> int:
    """Return the number of characters outside ASCII that hardly stand where they do in a word."""
    kinds = [" ", *map(_category, word), " "]
    n = 0
    for place, character in enumerate(word, 1):
        kind, before, after = kinds[place], kinds[place - 1], kinds[place + 1]
        if character.isascii():
            continue
        if kind in ODDEST or (kind == "Lu" and before == "Ll"):
            n += 1
        elif kind[0] in "SP" and character not in JOINERS:
            n += (before[0] == "L" and after[0] == "L") or (kind[0] == "S" and (before[0] == "L" or after[0] == "L"))
        elif kind[0] == "L" and before[0] == "L":
            n += _mixed(word[place - 2], character)
    return n


def _mixed(first: str, second: str) -> bool:
    """True if two letters are of two scripts that share no word."""
    scripts = _script(first), _script(second)
    return scripts[0] != scripts[1] and SCRIPTS.issuperset(scripts)


_category = functools.cache(unicodedata.category)


@functools.cache
def _script(letter: str) -> str:
    """Return the first word of a letter's name in Unicode, which is its script for those of ``SCRIPTS``."""
    return unicodedata.name(letter, "?").split()[0]
