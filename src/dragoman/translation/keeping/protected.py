"""Protected spans, which must arrive unchanged: numbers, addresses, placeholders, markup, emoji, codes, signs, marks.

``find`` returns the spans of a text, by one table of patterns; ``missing`` those that a translation lacks. All but
numbers must be there character by character. A number may be written differently: with other separators ("1,000.5" and
"1.000,5"), in words ("2" and "zwei", "2:30" and "halb drei": ``languages.numbers``), with another power of ten
("20 million" and "2000万"), a decade by two digits or four, a date in another order or with the name of its month, a
century in Roman numerals, an hour on the other clock (``dates``).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from dragoman.languages.known import is_known
from dragoman.languages.numbers import Words, has_words
from dragoman.languages.words import INVISIBLE, marks_as_letters
from dragoman.translation.keeping.dates import (
    TIME,
    Calendar,
    Time,
    evening_times,
    hours,
    is_day_and_month,
    is_decimal,
    is_month,
    may_have_spoken_times,
    same_times,
    times_of,
)
from dragoman.translation.keeping.same_numbers import (
    UnusedNumbers,
    chain_at,
    groups_of,
    links_of,
    powers_of,
    scales_of,
    shares_of,
    summed,
    without_grouping,
)
from dragoman.translation.keeping.written_numbers import (
    NUMBERS,
    SUPERSCRIPT,
    Context,
    Number,
    around,
    ends_of,
    fraction_in,
    in_ascii,
    is_unit,
    parse,
    sign_in,
    symbol_in,
    unit_of,
)

_CJK = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"  # ideographs and their punctuation, which may follow a URL
_ALONE = f"{_CJK}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\uac00-\ud7a3\U00020000-\U0003ffff"
_W = rf"[^\W{_ALONE}]"
"""A letter, digit or ``_`` of a script with spaces. Words of others stand beside a name without a space, as in
"打开config.yaml文件"; particles of Korean do so too."""
_START = rf"(?<![^\W\u00aa{_ALONE}])(?!\u00aa)"
"""No word goes on here; what stands for a mark (``marks_as_letters``) belongs to the letter before it."""
_MARK_OF_CJK = "\u3000-\u303f\uff00-\uff0f\uff1a-\uff20"
_PARTICLES = "\u0e00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\uac00-\ud7a3"
"""Letters of scripts that a URL may have, but that begin the next word right behind ASCII: Thai, Lao, Tibetan, Burmese,
Khmer, Hangul."""
_OWN_LETTER = rf"(?<![A-Za-z0-9)])[{_PARTICLES}]"  # /wiki/한국, but not the particle in .com에서
_NOT_IN_URL = rf"\s<>\"'()\[\]{{}}{_CJK}{_PARTICLES}"
_URL_INSIDE = rf"(?:[^{_NOT_IN_URL}]|{_OWN_LETTER}|\([^\s()<>{_CJK}]*\))"
_URL_LAST = rf"(?:[^{_NOT_IN_URL}.,;:!?…]|{_OWN_LETTER}|\([^\s()<>{_CJK}]*\))"
_DOMAINS = (
    "com|org|net|edu|gov|io|info|dev|app|eu|de|at|ch|fr|uk|cn|jp|au|bg|br|ca|cz|dk|fi|gr|hk|hu|kr|mx|nl|nz|pl|ro|rs|ru|sk|tr|tw|"
    "ua|vn|za"
)
"""Top-level domains that are no words behind a full stop without a space, as "no", "is" and "it" are."""
_FILES = (
    "txt|pdf|csv|tsv|json|ya?ml|toml|xml|html?|css|js|ts|py|c|h|cpp|rs|go|java|sh|md|rst|log|ini|cfg|docx?|xlsx?|pptx?|odt|"
    "zip|tar|gz|zst|png|jpe?g|gif|svg|webp|mp3|mp4|wav|srt|vtt|po|tmx|xliff?|exe|dll|so|db|sql|7z|apk|avi|bak|bat|bib|bmp|bz2|"
    "conf|cs|dmg|env|epub|flac|heic|ipynb|iso|jar|jsx|kt|lua|mkv|mov|odp|ods|ogg|php|ps1|psd|rar|rb|rtf|scss|sqlite|swift|tex|"
    "tiff?|tsx|ttf|vue|webm|xz"
)
_ABBREVIATION = r"(?:[^\W\d_]\.)+[ch]\.(?!\w\w)"  # d.h., a.h.w., c.c.: no files of C
_IN_PATH = rf"\([^\s\"<>|()]*\)|[^\s\"<>|){_MARK_OF_CJK}]"
_LATEX = (
    r"[hc]line|(?:top|mid|bottom)rule|new(?:line|page)|bf|it|rm|sc|sf|tt|em|item|begin|end|par|label|(?:text|math)\w+"
)
_WINDOWS_PATH = rf"(?:{_IN_PATH})+(?<![.,;:!?])"
_EMOJI = "[\u203c\u2049\u2190-\u21ff\u231a-\u23ff\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff\U0001f000-\U0001faff]"
_SIGN = (
    "\u00a9\u00ac\u00ae\u00b6\u2020\u2021\u203b\u2042\u2100-\u2102\u2104-\u2108\u210a-\u2112\u2114\u2115\u2117-\u2129"
    "\u212c-\u214f\u2200-\u2211\u2214-\u2235\u2237-\u22ff\u2300-\u2319\u2460-\u259f\u27c0-\u27ef\u2900-\u2933\u2936-\u2aff"
)
"""Signs of mathematics, of law and of footnotes, numbers in circles and lines of tables, but those that numbers have (a
minus) and those that languages write differently (\u2116, \u2103)."""
_BEFORE_OPTION = r"(?<![^\s(\[\"'\u201c\u2018=|/])"
_EMOJI_UNIT = rf"{_EMOJI}[\ufe0e\ufe0f]?[\U0001f3fb-\U0001f3ff]?[\U000e0020-\U000e007f]*"

_FORUM = "b|i|u|s|url|img|quote|code|color|size|center|list|spoiler"

PATTERNS = {
    "code": (
        r"(?<!`)(?P<ticks>`+)(?!`)[^\n]{1,1000}?(?<!`)(?P=ticks)(?!`)",  # inline code of Markdown
        r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b",
        # formulas of LaTeX; between single dollar signs, which may be prices, what has a sign of one
        r"\\\([^\n]{1,300}?\\\)|\\\[[^\n]{1,300}?\\\]|\$\$[^$\n]{1,300}\$\$",
        r"(?<![\w$])\$(?=[^\s$][^$\n]{0,200}?[\\^_{}=])[^$\n\"#;]{1,200}(?<!\s)\$(?![\w$])",
        # of strings: "Hello\nWorld"; what a small letter follows right behind a word may be LaTeX
        r"(?<=[\w.,:;!?)\"'])(?:\\[nrt])+(?=[A-Z\d\"'(]|\s*$)|(?<=[.,:;!?)])(?:\\[nrt])+|(?:\\n){2,}|\\u[0-9A-Fa-f]{4}",
    ),
    "markup": (
        r"<!--(?:[^<]|<(?!!--)){0,2000}?-->",
        r"</?\d{1,3}(?:\s?/)?>",  # numbered tags of localisation
        # Without a value, more than four words are no tag but text in angle brackets.
        r"</?[A-Za-z][\w:.-]*(?:(?:\s+[^\s<>]{1,60}){0,3}\s*|\s[^<>=]{0,300}=[^<>]{0,1000})/?>",
        r"&(?:#\d{1,7}|#x[0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});",
        # of forums
        rf"\[(?P<forum>{_FORUM})(?:=[^\[\]\n]{{1,200}})?\](?=[^\n]{{0,300}}?\[/(?P=forum)\])|\[/(?:{_FORUM})\]",
        # emphasis of Markdown
        rf"(?<!{_W})(?<!\*)\*{{2,3}}(?=[^\s*])|(?<=[^\s*])\*{{2,3}}(?!{_W}|\*)",
        rf"(?<!{_W})(?<!~)~~(?=[^\s~])|(?<=[^\s~])~~(?!{_W}|~)",
    ),
    "url": (
        rf"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{{1,15}}://{_URL_INSIDE}*{_URL_LAST}",
        rf"(?<![A-Za-z0-9])(?:mailto|tel|magnet|urn|doi|arXiv|data:[a-z]{{1,20}}/[a-z]{{1,20}})[:;](?!/){_URL_INSIDE}*{_URL_LAST}",
        rf"(?<![\w.])10\.\d{{4,9}}/{_URL_INSIDE}*{_URL_LAST}",  # DOI
        # of git
        r"(?<![\w.+-])[A-Za-z0-9][\w.-]{0,62}@[A-Za-z0-9][A-Za-z0-9.-]{0,252}:[\w.~-]{1,100}"
        r"(?:/[\w.~-]{1,100}){1,20}(?<![.])",
        rf"(?<![A-Za-z0-9@.])www\.{_URL_INSIDE}*{_URL_LAST}",
    ),
    "e-mail address": (
        r"(?<![A-Za-z0-9.+_%-])[A-Za-z0-9.+_%-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,}",
    ),
    "domain": (
        rf"{_START}(?<![.@/-])(?:[A-Za-z0-9-]{{2,63}}\.)+(?:{_DOMAINS})(?!{_W}|-)(?:/(?:{_URL_INSIDE}*{_URL_LAST})?)?",
    ),
    "placeholder": (
        r"\$?\{\{\{?[^{}\n]{0,120}\}?\}\}",  # {{name}}, {{#if name}}
        r"[$#%@]?\{[^{}\s]{0,64}\}|\{ \w[\w.]{0,62} \}",  # {name}, {0}, {}, ${NAME}, #{name}
        # of Jinja, Blade, Template Toolkit, PHP
        r"\{%(?:[^{}\s]| (?! )){1,120}%\}|\{#[^{}\n]{1,120}#\}|\{!![^{}\n]{1,120}!!\}"
        r"|\[%[^\[\]\n]{1,120}%\]|<\?\w[^<>\n]{0,200}\?>",
        r"\$\([A-Za-z_][\w.]{0,60}\)|%%\w{1,40}%%|(?<![\d%])%<\w{1,60}>[-+#0]*+\d*+(?:\.\d++)?+[A-Za-z]",
        r"\{\w+,\s*(?:plural|select|selectordinal|number|date|time)\b(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}",  # ICU
        r"(?<![\d%])%(?:\d++\$)?+#@\w++@",  # of Xcode
        r"(?<![\d%])%\(\w++\)[#0+,(-]*+\d*+(?:\.\d++)?+[diouxXeEfFgGcrsa]",
        r"(?<![\d%])%(?:\d++\$)?+[#0+,(-]*+\d*+(?:\.\d++)?+(?:hh?|ll?|[jzt])?[diouxXeEfFgGcrsap@](?![A-Za-z0-9])",
        rf"{_START}(?<!%)%[A-Za-z_][A-Za-z0-9_.-]{{0,60}}[A-Za-z0-9_]%(?!{_W}|%)",  # of Symfony, of Windows
        r"\$t\([^()\s]{1,64}\)",  # of i18next
        rf"{_START}(?<!\$)\$[A-Za-z_]{_W}*",
        r"<%[=-]?[^<>%]{1,100}%>",  # of templates: ERB, EJS
        r"\[\[\w(?:[\w.:-]{0,62}\w)?\]\]",
        r"\*\|[^|\s]{1,64}\|\*",  # of Mailchimp
        rf"{_START}(?P<sign>[@#])[A-Za-z_][A-Za-z0-9_.-]{{0,60}}(?P=sign)(?!{_W})",  # @name@, #name#
        r"<[@#!][^\s<>]{1,80}>|<a?:\w{1,40}:\d{5,25}>",  # of Slack and Discord
        r"\[[A-Z0-9_]+\]",
        rf"{_START}__[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*__(?!{_W})",
    ),
    "emoji": (
        r"[0-9#*]\ufe0f?\u20e3",  # keycaps
        "[\U0001f1e6-\U0001f1ff]{2}",  # flags
        rf"{_EMOJI_UNIT}(?:\u200d{_EMOJI_UNIT})*",
        rf"{_START}(?<!:):[a-z][a-z0-9_+-]{{1,40}}:(?!{_W}|:)",
        r"(?<![^\s(])(?:[:;=][-'^]?[)(\]\[DPpOo*|/\\]|<3|\^_?\^|[xX]D)(?![\w:/])",
    ),
    "name": (
        r"(?<![\w&#/])#[^\W\d]\w*",  # hashtags
        rf"{_START}(?<![@.])@{_W}(?:(?:{_W}|[.-])*{_W})?",  # accounts
    ),
    "path": (
        rf"{_START}(?<![/.~])(?:~|\.{{1,2}})?/(?:{_W}|[.+-])+/(?:[\w.+-]+/)*(?:{_W}|[.+-])*(?<![.,;:])",
        rf"{_START}(?<![/.~])(?:~|\.{{1,2}})/(?:{_W}|[.+-])+(?<![.,;:])",
        rf"{_START}[A-Za-z]:/(?=\w){_WINDOWS_PATH}",
        rf"{_START}[A-Za-z]:\\{_WINDOWS_PATH}",
        # \\server\share\a.txt; what has braces is LaTeX or a regular expression
        rf"{_START}(?<!\\)\\\\(?!(?:{_LATEX})\\)(?:[?.]|[A-Za-z0-9][\w.$@-]+)\\(?=\w)(?!\S{{0,80}}[{{}}]){_WINDOWS_PATH}",
        rf"{_START}(?<![.-])(?!{_ABBREVIATION})(?:{_W}++|-)++(?:\.(?:{_W}++|-)++)*\.(?:{_FILES})(?!{_W}|-)",
        # Only between signs is it clear where a name in such a script begins.
        rf"(?<=[\"'“‘「『《«(（])[\w-]+(?:\.[\w-]+)*\.(?:{_FILES})(?=[\"'”’」』》»)）])",
    ),
    "identifier": (
        rf"{_START}(?<!\.)[A-Za-z]{_W}*(?:\.{_W}+)*\(\)",
        rf"{_START}(?<!\.)[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+(?!{_W})",
        rf"{_START}(?<!\.)v\d+(?:\.\d+)+(?:-[A-Za-z0-9.]*[A-Za-z0-9])?(?!{_W})",  # versions
        # A4, COVID-19, XK-2041-B, GPT-4
        rf"{_START}(?<!-)[A-Z]++(?:-[A-Z]++)*+-?+\d[A-Z0-9]*+(?:\.\d++)*+(?!{_W})(?:-[A-Z0-9]++(?!{_W}))*+",
        # times of ISO 8601
        rf"{_START}\d{{4}}-\d\d-\d\dT\d\d:?\d\d(?::?\d\d(?:[.,]\d{{1,9}})?)?(?:Z|[+-]\d\d:?\d\d)?(?!{_W})",
        rf"{_START}\d(?:-?\d){{8}}-?[Xx](?!{_W})",  # ISBN
        # addresses of IPv6 and of network cards
        r"(?<![\w:.])(?:[0-9A-Fa-f]{1,4}:){1,7}(?::[0-9A-Fa-f]{1,4}){1,6}(?![\w:])",
        r"(?<![\w:.])(?:[0-9A-Fa-f]{1,4}:){5,7}[0-9A-Fa-f]{1,4}(?![\w:])",
        # r2d2, iPhone14, x86, C++, CO₂; what longer words end with is a number: python3, and the mark of a footnote
        rf"{_START}(?<![.-])[A-Za-z]++(?:\d++[A-Za-z][A-Za-z0-9]*+(?!{_W})|\+\+(?![\w+])|"
        rf"[\u00b2\u00b3]?+[\u2080-\u2089\u207a\u207b][A-Za-z\u2080-\u2089{SUPERSCRIPT}\u207a\u207b]*+)",
        rf"{_START}(?<![.-])(?:[A-Z]++[a-z]++|[a-z]++)[A-Z][A-Za-z]*+\d++(?!{_W})",
        rf"{_START}(?<![.-])(?!m[23])[A-Za-z]\d++(?:\.\d++)*+(?!{_W})|{_START}[A-Z]#(?![\w#])",
        # 1920x1080
        rf"{_START}(?!0[xX])\d++(?:[.,]\d++)?+(?:[xX]\d++(?:[.,]\d++)?+)++[A-Za-z]{{0,3}}(?!{_W})",
        # options of commands: --no-color, --out=a.txt, -v; a single vowel may be a word behind a dash
        rf"{_BEFORE_OPTION}--[a-z]\w*+(?:(?:-\w++)++(?!=)|[\w-]*+=[^\s,;)\]\"']*[^\s,;)\]\"'.!?:])",
        r"(?<=[\s(\[\"'\u201c\u2018=|/])--[a-z]\w*+(?![\w=-])",
        rf"{_BEFORE_OPTION}-[b-df-hj-np-tv-xz](?![\w'\u2019.-])",
        rf"{_START}(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{{7,64}}(?!{_W})",  # hashes
    ),
    "number": (
        rf"{_START}(?<!\+)(?:\+|00)\d{{1,3}}(?:[ ()./-]{{0,3}}\d){{6,14}}(?!\d)",  # telephone
        rf"{_START}\(\d{{2,5}}\)[ -]?\d(?:[ -]?\d){{4,9}}(?!\d)",
        *NUMBERS,
    ),
    "sign": (
        rf"(?:[{_SIGN}][\ufe0e\ufe0f\u00aa]?)+",
        r"(?<![^\s\w])(?:<?[-=]{1,2}>|<[-=]{1,2}|[<>=!:]=|={2,3}|&&|\|\|)(?![^\s\w])",
        r"(?<![\w<>=~-])[~<>](?=\d)|(?<=\d)\+(?!\S)",  # ~3, 18+
        # (a) or b), in a text
        r"(?<![^\s\d)])\((?:[A-Za-z]|[ivx]{2,5}|[IVX]{2,5})\)|(?<= )(?:[a-z]|[ivx]{2,5})\)(?!\w)",
        r"(?<!\S)[=+|/<>~\u00b1\u00d7\u00f7\u2212](?!\S)",
    ),
}  # fmt: skip
"""Patterns of protected spans by kind. The earliest match is taken, of several the one of the first pattern."""

# compiled when a text may have a span: it takes a tenth of a second
_ALL = cache(
    lambda: re.compile(
        "|".join(f"(?P<k{i}>{'|'.join(patterns)})" for i, patterns in enumerate(PATTERNS.values())), re.DOTALL
    )
)
_KINDS = {f"k{i}": kind for i, kind in enumerate(PATTERNS)}
_MAY_HAVE_ONE = re.compile(
    r"[\d\u00a9\u00ac\u00ae\u00b1-\u00b3\u00b6\u00b9\u00bc-\u00be\u00d7\u00f7\u2020\u2021<>&@/\\{}%$|*~+)\[\]#_`:;=^\u203b-\u2bff"
    r"\U0001f000-\U0001faff]|www\.|\.\w|[xX]D\b|-(?<![^\s(\[\"'\u201c\u2018=|/]-)[a-z-]"
)

_LIST_MARK = re.compile(
    r"\s*+((?:[-\u2010-\u2015*+>#\u2022\u2023\u2043\u25aa\u25e6\u00b7]{1,6}[^\S\r\n]++)++(?:\[[ xX]\][^\S\r\n]++)?+"
    r"|\[[ xX]\][^\S\r\n]++|[\u00bb\u203a][^\S\r\n]++(?![^\u00ab\u2039]*[\u00ab\u2039])"
    r"|\(?(?:[A-Za-z]|([a-z])\2|[ivx]{2,5}|[IVX]{2,5})\)[^\S\r\n]++|[A-Za-z0-9]{1,2}\.\)[^\S\r\n]++"
    r"|(?:[\u2022\u2023\u2043\u25aa\u25e6\u00b7]{1,6}|>{1,6})(?=[^\W_])"
    r"|[-\u2013-\u2015]{1,2}(?=[^\W\d_a-z])(?![^\W\d_]++-?\d)|\*{1,3}(?=[^\W_])(?![^*]*\*))(?=\S)"
)
"""What stands before an entry of a list, a heading, a footnote, a quotation or speech, with the space behind it:
``- [x]``, ``#``, the dash of "-Where?"."""

_JOINED = re.compile(rf"(?<![^\W_])\d++(?:[{INVISIBLE}]++\d++)++|(?<=[^\W_])[{INVISIBLE}]++(?=\d)")
"""What nobody sees between the digits of a number, or between a word and digits that are read as a part of it."""

_UNSEEN = re.compile(f"[{INVISIBLE}]")


def _as_read(text: str) -> str:
    """Return a text of the same length in which marks, and what nobody sees, stand for a part of the word before.

    That is U+00AA; within a number it is a digit.
    """
    text = marks_as_letters(text)
    return _JOINED.sub(lambda part: _UNSEEN.sub("0" if part[0][0].isdigit() else "\u00aa", part[0]), text)


class Span(NamedTuple):
    """A protected part of a text."""

    kind: str  # one of ``PATTERNS``, or list mark
    text: str
    start: int

    @property
    def end(self) -> int:
        """Index of the character after it."""
        return self.start + len(self.text)

    @property
    def note(self) -> str:
        """Kind of the note if it is missing: number or placeholder."""
        return "number" if self.kind == "number" else "placeholder"


def find(text: str) -> list[Span]:
    """Return the protected spans of ``text``, in order; they do not overlap."""
    mark = _LIST_MARK.match(text)
    if mark is None and not _MAY_HAVE_ONE.search(text):  # the usual case
        return []
    marks, begin = ([], 0) if mark is None else ([Span("list mark", mark[1], mark.start(1))], mark.end())
    return [*marks, *(Span(kind, text[start:end], start) for kind, start, end in _places(text, begin))]


def _places(text: str, begin: int = 0) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each span from ``begin`` on; a chain of numbers, as 1億2000万, is one span."""
    kind, start, end, chained = "", 0, 0, 0
    for match in _ALL().finditer(_as_read(text), begin):
        if match.start() < chained:  # a further number of the chain, perhaps with its unit
            end = max(end, match.end())
            continue
        if kind:
            yield kind, start, end
        kind, (start, end) = _KINDS[match.lastgroup or ""], match.span()
        chain = chain_at(text, start) if kind == "number" else None
        if chain is not None and start + chain.numbers[0][1] == end:
            end = chained = start + chain.end
    if kind:
        yield kind, start, end


def missing(
    spans: Sequence[Span], translation: str, src: str, tgt_lang: str | None, src_lang: str | None = None
) -> list[Span]:
    """Return the spans that a translation lacks; a span that comes twice must be there twice.

    A time such as "half past three" is no span, but it is lost too if the translation has another time in its place.

    Args:
        spans: Result of ``find``.
        translation: Text on one line.
        src: Source text; the word after a number ("million") matters.
        tgt_lang: Language of numbers in words; None or unknown: any number up to ``MOST_AS_WORD`` may be a word.
        src_lang: Language of the source. If its number words are known, a 1 that became another number is missing,
            though the translation has an article that means one.
    """
    lost, remainder = _without_copies(spans, translation)
    numbers = [span for span in spans if span.kind == "number"]
    times = _Times.of(Sides(src, remainder, src_lang, tgt_lang))
    lost += (other := times.lost(numbers))
    if left := [span for span in times.left(numbers) if span not in other]:
        lost += _compared(left, [*_numbers(times.sides.translation)], times.sides)[0]
    return sorted(lost, key=lambda span: span.start)


def is_reckoned(number: Span, src: str) -> bool:
    """True if other languages write a number with the words at it in other digits: 8折, "halb 4", 1億2000万."""
    if number.kind != "number":
        return False
    context = around(src, number.start, number.end)
    is_other = bool(evening_times(in_ascii(number.text), context)) or summed(number.text) != number.text
    return is_other or bool(shares_of(number.text, context.after)) or _is_spoken_time(number, src)


_LONGEST_TIME = 60
"""Number of characters before and after a number in which the words of its time of day are looked for."""


def _is_spoken_time(number: Span, src: str) -> bool:
    """True if a number is, or may be, a part of a time with half or a quarter in the words of any language."""
    first = max(0, number.start - _LONGEST_TIME)
    times = [time for time in times_of(src[first : number.end + _LONGEST_TIME], None) if time.is_spoken]
    return any(first + time.start < number.end and number.start < first + time.end for time in times)


def _without_copies(spans: Sequence[Span], translation: str) -> tuple[list[Span], str]:
    """Look for the spans that are no numbers; places in the translation stay.

    Returns:
        Those that a translation lacks, and the translation with line ends in the places of the others.
    """
    lost: list[Span] = []
    by_text: dict[str, list[Span]] = {}
    for span in spans:
        if span.kind != "number":
            by_text.setdefault(span.text, []).append(span)
    # longest first: a span may contain another one
    for text, same in sorted(by_text.items(), key=lambda entry: -len(entry[0])):
        # CO₂ may be written CO2, and (a) as a)
        for form in dict.fromkeys((text, _SUBSCRIPTS.sub(_as_digit, text), _OPENED.sub("", text))):
            n, translation = _without(form, translation, len(same))
            same = same[n:]
        lost += same
    return lost, translation


def _without(part: str, text: str, most: int) -> tuple[int, str]:
    """Put line ends in the places of a part, at most of ``most``; return their number, and the text.

    Those that touch no letter or digit come first: the plus sign of "a + b" before that of "+25".
    """
    free: list[int] = []
    touching: list[int] = []
    start = text.find(part)
    while start >= 0:
        end = start + len(part)
        touches = text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()
        (touching if touches else free).append(start)
        start = text.find(part, end)
    chosen = sorted([*free, *touching][:most])
    edges = [0, *(edge for start in chosen for edge in (start, start + len(part))), len(text)]
    kept = [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return len(chosen), ("\n" * len(part)).join(kept)


_SUBSCRIPTS = re.compile("[\u2080-\u2089]")
_OPENED = re.compile(r"^\((?=\w{1,5}\))")


def _as_digit(subscript: re.Match[str]) -> str:
    """Return the digit of a subscript."""
    return str(unicodedata.digit(subscript[0]))


MOST_AS_WORD = 12
"""Largest number that is not reported as missing if the number words of the target language are unknown."""


class Sides(NamedTuple):
    """A source, its translation, and the languages of both as far as they are known."""

    src: str
    translation: str
    src_lang: str | None
    tgt_lang: str | None


class _Times(NamedTuple):
    """Times of a source and its translation, one of which has a word for half or a quarter: 3:30 and "halb vier"."""

    sides: Sides  # with line ends in the places of these times
    src: str
    translation: str
    other_src: Sequence[Time]  # times that the translation lacks
    other_translation: Sequence[Time]  # times that the source does not have

    @classmethod
    def of(cls, sides: Sides) -> _Times:
        """Compare the times of both texts."""
        texts = (sides.src, sides.src_lang), (sides.translation, sides.tgt_lang)
        if not (may_have_spoken_times(*texts[0]) or may_have_spoken_times(*texts[1])):  # the usual case
            return cls(sides, sides.src, sides.translation, (), ())
        same = same_times(*(_times_of(text, lang) for text, lang in texts))
        left = sides._replace(
            src=_with_line_ends(sides.src, [*same.src, *same.other_src]),
            translation=_with_line_ends(sides.translation, [*same.translation, *same.other_translation]),
        )
        return cls(left, sides.src, sides.translation, same.other_src, same.other_translation)

    def lost(self, numbers: Sequence[Span]) -> list[Span]:
        """Return the numbers of the source that are hours of times that the translation lacks, and times in words."""
        if not self.other_src:  # the usual case
            return []
        text = _with_line_ends(self.src, self.other_src)
        in_words = [_span(time, self.src) for time in self.other_src]
        return [span for span in numbers if text[span.start : span.end] != span.text] + [
            span for span in in_words if not any(map(str.isdecimal, span.text))
        ]

    def left(self, numbers: Sequence[Span]) -> Sequence[Span]:
        """Return the numbers of the source that are no part of these times."""
        now = self.sides.src
        if now is self.src:  # the usual case
            return numbers
        return [
            span
            for span in numbers
            if now[span.start : span.end] == span.text or any(map(str.isdecimal, now[span.start : span.end]))
        ]

    @property
    def wrong(self) -> list[Span]:
        """Times of the translation that the source does not have."""
        return [_span(time, self.translation) for time in self.other_translation]


def _times_of(text: str, lang: str | None) -> list[Time]:
    """Return the times of a text; if its language is not known, without those in words that are not sure."""
    has_perhaps = lang is not None and is_known(lang)
    return [time for time in times_of(text, lang) if time.is_sure or has_perhaps or not time.is_spoken]


def _span(time: Time, text: str) -> Span:
    return Span("number", text[time.start : time.end], time.start)


def _with_line_ends(text: str, times: Sequence[Time]) -> str:
    """Return a text of the same length with line ends in the places of times."""
    parts, end = [], 0
    for time in sorted(times, key=lambda time: time.start):
        parts += [text[end : time.start], "\n" * (time.end - time.start)]
        end = time.end
    return "".join([*parts, text[end:]])


def unmatched(sides: Sides) -> list[Span]:
    """Return the numbers of a translation that its source has in no form: not as digits, nor in words.

    If the number words of the source language are unknown, any number up to ``MOST_AS_WORD`` may be a word.
    """
    spans = find(sides.src)
    numbers = [span for span in spans if span.kind == "number"]
    # the 50 of a copied address is none of the text's
    times = _Times.of(sides._replace(translation=_without_copies(spans, sides.translation)[1]))
    own = [*_numbers(times.sides.translation)]
    if not own:  # the usual case
        return times.wrong
    _, unused, left = _compared(times.left(numbers), own, times.sides)
    return sorted([*_wrong(unused, left, times.sides), *times.wrong], key=lambda span: span.start)


def _wrong(unused: Sequence[Span], left: Counter[int], sides: Sides) -> list[Span]:
    """Return the unused numbers of a translation that its source does not have in words either.

    Args:
        left: Groups of digits that are left; those of the numbers that are looked at are taken out.
    """
    words, calendar = _words(sides.src, sides.src_lang), Calendar(sides.src, sides.translation)
    alone = []
    for span in unused:
        groups = Counter(_groups(span.text))
        if span.kind != "number" or not groups or any(left[group] < n for group, n in groups.items()):
            continue
        left -= groups
        context = around(sides.translation, span.start, span.end)
        if calendar.take(in_ascii(span.text), context):
            continue
        whole = summed(span.text)
        value = next(iter(_groups(whole)))
        as_word = _is_half(span.text, context, sides.src) or (
            (groups.total() == 1 or whole != span.text)
            and (any(map(words.take, _values(value, context))) if words is not None else value <= MOST_AS_WORD)
        )
        alone += [] if as_word else [span]
    return alone


def _words(text: str, lang: str | None) -> Words | None:
    """Return the number words of a text; None if those of its language are not known."""
    return Words(text, lang) if lang and has_words(lang) else None


def _groups(text: str) -> tuple[int, ...]:
    """Return the groups of digits of a number of a translation; the 30 of 30,000 is no number of its own."""
    return groups_of(without_grouping(text))


def _ungrouped(text: str) -> str:
    """Return a number with decimals as well without its separators of thousands: 1234,56 for "1 234,56"."""
    return without_grouping(text) if len(groups_of(text)) > 2 else text  # 1.234 may have decimals


def _values(value: int, context: Context) -> list[int]:
    """Return a number, and what it is with the word after it: 10,000,000 for the 10 of "10 million", 70 for 7割."""
    shares = [int(share.rstrip("%")) for share in shares_of(str(value), context.after)]
    return [value, *(value * 10**power for power in powers_of(context.after)), *shares]


class Numerals(NamedTuple):
    """Numbers of a translation without a partner, by their groups of digits."""

    groups: Counter[int]
    marks: dict[int, Counter[tuple[frozenset[int], str | None]]]
    """For each group, how many have a word for which powers of ten, and which unit."""
    decimals: Counter[frozenset[int]]  # both groups of those with a decimal mark

    @classmethod
    def of(cls, numbers: Iterable[tuple[Span, Context]]) -> Numerals:
        """Return the groups of numbers, each given with the text around it."""
        numerals = cls(Counter(), {}, Counter())
        for span, context in numbers:
            groups, mark = _groups(span.text), _mark_of(span.text, context)
            numerals.groups.update(groups)
            for group in groups if any(mark) else ():
                numerals.marks.setdefault(group, Counter())[mark] += 1
            if len(groups) == 2 and is_decimal(_ungrouped(parse(span.text).core), context):
                numerals.decimals[frozenset(groups)] += 1
        return numerals

    def n_of_others(self, group: int, mark: tuple[frozenset[int], str | None]) -> int:
        """Return how many of a group have only other powers of ten or another unit: 3 million is not 3 billion."""
        if not any(mark):
            return 0
        powers, unit = mark
        return sum(
            n
            for (others, other), n in self.marks.get(group, Counter()).items()
            if (powers and others and not powers & others) or (unit and other and unit != other)
        )


def _mark_of(text: str, context: Context) -> tuple[frozenset[int], str | None]:
    """Return the powers of ten of the word after a number, and its unit, as far as both are known."""
    return scales_of(context.after), unit_of(text, context)


class _Remaining(NamedTuple):
    """Parts of a translation that numbers may stand in which it has in no single number."""

    text: str
    left: Counter[int]  # groups of digits of the numbers that are left
    words: Words | None
    calendar: Calendar
    numerals: Numerals
    n_dates: int  # dates with a year of the source


def _compared(
    numbers: Sequence[Span], own: Sequence[tuple[Span, Context]], sides: Sides
) -> tuple[list[Span], list[Span], Counter[int]]:
    """Return the numbers that a translation lacks, its own that none of them took, and the groups of digits left."""
    contexts = {span: around(sides.src, span.start, span.end) for span in numbers}
    symbols = [*_symbols(numbers), *("%" for span in numbers if shares_of(span.text, contexts[span].after))]
    unused = UnusedNumbers([(span.text, context) for span, context in own], symbols)
    # what has no partner may be written in words, or in parts, as a date with the name of its month
    in_order = sorted(numbers, key=lambda span: (*_rank(span, contexts[span]), -len(span.text)))
    lost = [number for number in in_order if unused.take(number.text, contexts[number]) is None]
    left = [own[i] for i in unused.left()]
    if lost:
        lost, left = _without_chains(lost, contexts, left)
    alone = [span for span, _ in left]
    if any(ends_of(span.text) for span in (*lost, *(alone if lost else ()))):
        lost, left, alone = _without_ranges(lost, contexts, left)
    words = _words(sides.translation, sides.tgt_lang)
    calendar = Calendar(sides.translation, sides.src)
    n_dates = sum(_DATE.fullmatch(in_ascii(span.text)) is not None for span in numbers)
    remaining = _Remaining(sides.translation, Counter(), words, calendar, Numerals.of(left), n_dates)
    remaining.left.update(remaining.numerals.groups)
    ones = [span for span in lost if span.text == "1"]
    others = [span for span in lost if span.text != "1"]
    lost = [span for span in others if not _is_there(span.text, contexts[span], remaining)]
    # an article is no 1 while the translation has another number in its place
    n_changed = _n_changed(alone, remaining.left, sides) if ones else 0
    n_words = max(0, len(ones) - n_changed)
    lost += [span for span in ones[:n_words] if not _is_there(span.text, contexts[span], remaining)]
    if words is not None:
        remaining = remaining._replace(words=Words("", str(sides.tgt_lang)))
    lost += [span for span in ones[n_words:] if not _is_there(span.text, contexts[span], remaining)]
    return lost, alone, remaining.left


_AS_COLLECTIVE = frozenset({1, 2, 6, 12})  # a pair, half a dozen


def _n_changed(unused: Sequence[Span], left: Counter[int], sides: Sides) -> int:
    """Return how many small numbers of a translation its source surely has in no form, not even as a word."""
    if not sides.src_lang or not has_words(sides.src_lang):
        return 0
    wrong = [span.text for span in _wrong(unused, left.copy(), sides)]
    small = [int(text) for text in wrong if text.isdecimal() and len(text) < 3]
    return sum(value <= MOST_AS_WORD and value not in _AS_COLLECTIVE for value in small)


def _symbols(numbers: Sequence[Span]) -> list[str]:
    """Return the symbol of each number."""
    return [parse(summed(span.text)).symbol for span in numbers]


def _without_chains(
    lost: Sequence[Span], contexts: Mapping[Span, Context], own: Sequence[tuple[Span, Context]]
) -> tuple[list[Span], list[tuple[Span, Context]]]:
    """Look for the numbers of each chain by themselves, as of "1 млн 200 тыс." and "1 million and 200 thousand".

    Args and returns are those of ``_without_ranges``, without the last list.
    """
    src = [(span.text, contexts[span]) for span in lost]
    there, used = _split(src, [(span.text, context) for span, context in own])
    used_too, there_too = _split([(span.text, context) for span, context in own], src)
    there, used = there | there_too, used | used_too
    return (
        [span for i, span in enumerate(lost) if i not in there], [part for i, part in enumerate(own) if i not in used]
    )  # fmt: skip


def _split(numbers: Sequence[tuple[str, Context]], others: Sequence[tuple[str, Context]]) -> tuple[set[int], set[int]]:
    """Return the indices of chains whose numbers are all among others, and the indices of these."""
    chains = {i: links for i, (text, context) in enumerate(numbers) if (links := links_of(text, context))}
    unused, split, used = UnusedNumbers(others if chains else ()), set[int](), set[int]()
    for i, links in chains.items():
        places = [unused.take(*link) for link in links]
        if None not in places:
            split.add(i)
            used.update(place for place in places if place is not None)
    return split, used


def _without_ranges(
    lost: Sequence[Span], contexts: Mapping[Span, Context], own: Sequence[tuple[Span, Context]]
) -> tuple[list[Span], list[tuple[Span, Context]], list[Span]]:
    """Look for both ends of each range by themselves, as of "5-10%" and "5 bis 10 %".

    Args:
        lost: Numbers of the source without a partner.
        contexts: The text around each.
        own: Numbers of the translation without a partner, each with the text around it.

    Returns:
        The numbers that are still without a partner, those of the translation with each end of a range by itself, and
        those of the translation of which no part has a partner.
    """
    places, parts, texts = list[int](), list[tuple[Span, Context]](), list[tuple[str, Context]]()
    for place, (span, context) in enumerate(own):
        ends = ends_of(span.text) if span.kind == "number" else ()
        starts = (span.start, span.end - len(ends[1].written)) if ends else ()
        places += [place] * (len(ends) or 1)
        parts += [(Span("number", end.written, start), context) for end, start in zip(ends, starts, strict=True)] or [
            (span, context)
        ]
        texts += [(end.text, context) for end in ends] or [(span.text, context)]
    unused, used, there = UnusedNumbers(texts, _symbols(lost)), set[int](), set[Span]()
    # numbers before ranges: a range of which one end is missing leaves nothing to them
    for span in sorted(lost, key=lambda span: bool(ends_of(span.text))):
        taken = _take_ends(unused, span.text, contexts[span])
        if taken:
            used.update(taken)
            there.add(span)
    left = [part for i, part in enumerate(parts) if i not in used]
    used_places = {places[i] for i in used}
    alone = [span for place, (span, _) in enumerate(own) if place not in used_places]
    return [span for span in lost if span not in there], left, alone


def _take_ends(unused: UnusedNumbers, text: str, context: Context) -> list[int]:
    """Take a number, or both ends of a range, and return their indices; none if a part is missing."""
    ends = ends_of(text)
    if not ends:
        taken = unused.take(text, context)
        return [] if taken is None else [taken]
    first, second = (unused.take(end.text, context) for end in ends)
    # a symbol or unit may be at one of both alone
    if first is None and second is not None:
        first = unused.take(ends[0].text, context, symbol="")
    elif second is None and first is not None:
        second = unused.take(ends[1].text, context, symbol="")
    return [] if first is None or second is None else [first, second]


def _is_there(text: str, context: Context, remaining: _Remaining) -> bool:
    """True if a number, or both ends of a range, are there in words or in parts."""
    if _is_other_mark(text, context, remaining.text):
        return False
    text = summed(text)
    if _is_written_out(parse(text), context, remaining):
        return True
    ends, left = ends_of(text), remaining.left
    if not ends:
        return False
    # if one end is missing, the other takes nothing from other numbers: neither its digits nor an hour
    before = {group: left[group] for group in (*groups_of(text), *_groups(text), *range(26))}
    if all(_is_written_out(parse(end.text), context, remaining) for end in ends):
        return True
    left.update({group: n - left[group] for group, n in before.items()})
    return False


def _rank(span: Span, context: Context) -> tuple[bool, bool, bool]:
    """Return the order of numbers in which the fewest compete: full hours first, months last, for they have names.

    Before the months are numbers with a word for a power of ten, for they have other forms too.
    """
    core = in_ascii(span.text)
    is_hour = core.isdecimal() and hours(core, context) is not None
    return is_month(core, context), not is_hour, bool(powers_of(context.after))


_MARK = re.compile(r"\s*(\d{1,2})[.)]\s")
_MARK_AFTER = re.compile(r"([.)])\s")
_MARK_IN_WORDS = re.compile(r"\s*[(（]?[^\W_]{1,9}\s?[.)）、．:：]")  # 一、


def _is_other_mark(text: str, context: Context, translation: str) -> bool:
    """True if a number is the mark of a list, "1." or "1)", and the translation has another mark, or none for "1)"."""
    after = _MARK_AFTER.match(context.after)
    if after is None or context.before.strip() or not text.isdecimal() or len(text) > 2:
        return False
    other = _MARK.match(translation)
    if other is not None:
        return int(other[1]) != int(text)
    return after[1] == ")" and not _MARK_IN_WORDS.match(translation)


def _is_written_out(number: Number, context: Context, remaining: _Remaining) -> bool:
    """True if a number is there in words or in parts, and with it a word or a sign for each of its marks."""
    if number.power or not sign_in(number.sign, remaining.text) or not symbol_in(number.symbol, remaining.text):
        return False
    if _is_half(number.core, context, remaining.text):
        return True
    if number.has_fraction and number.fraction is not None and fraction_in(number.fraction, remaining.text):
        whole = int(number.fraction)
        return not whole or _in_parts(str(whole), Context(), remaining)
    groups = groups_of(number.core)
    # a superscript is not written out; "ein" beside a unit is mostly an article
    if not groups or (number.has_fraction and len(groups) < 2) or (is_unit(number.symbol) and groups == (1,)):
        return False
    if number.sign or number.symbol:
        # digits without the mark that belongs to them do not count: only a word does
        remaining = remaining._replace(left=Counter())
    elif remaining.calendar.take(number.core, context):
        return True
    return _as_word(number.core, context, remaining) or _in_parts(number.core, context, remaining)


def _is_half(number: str, context: Context, other: str) -> bool:
    """True if a number is five tenths, as 5割, and another text has a word for a half."""
    return "50%" in shares_of(number, context.after) and fraction_in(Fraction(1, 2), other)


def _numbers(text: str) -> Iterable[tuple[Span, Context]]:
    """Yield the numbers of a text, each with the text around it; inside a span such as 21-D it has none, nor a kind."""
    for kind, start, end in _places(text):
        if kind == "number":
            yield Span("number", text[start:end], start), around(text, start, end)
        else:  # numbers inside other spans, such as "21-D"
            for inner in re.finditer(r"\d+(?:[.,]\d+)*", text[start:end]):
                yield Span("", inner[0], start + inner.start()), Context()


def _in_parts(text: str, context: Context, remaining: _Remaining) -> bool:
    """True if each group of digits is there, as digits or as a word; the month of a date may be a name."""
    text = _ungrouped(text)
    groups, left, words, numerals = groups_of(text), remaining.left, remaining.words, remaining.numerals
    mark = _mark_of(text, context)
    absent, used = [], Counter[int]()
    for group in groups:
        if left[group] - numerals.n_of_others(group, mark) > used[group]:
            used[group] += 1
        elif words is None or not words.take(group):
            absent.append(group)
    is_there = not absent or (len(absent) == 1 and absent[0] in _months(text, context, remaining))
    if is_there and used.total() == 2 and is_decimal(text, context):
        # 1.5 is no 1,05 nor 5,1: the groups of one number are no parts
        n_same = numerals.decimals[frozenset(groups)]
        is_there = n_same == 0 or any(left[group] > n * n_same for group, n in used.items())
    if is_there:
        left.subtract(used)  # a number that is not there takes nothing from the others
    return is_there or (words is None and len(groups) == 1 and groups[0] <= MOST_AS_WORD)


_DATE = re.compile(r"\d+([./-])\d+\1\d+")


def _months(text: str, context: Context, remaining: _Remaining) -> Container[int]:
    """Return the groups of digits of a date that may be a name in the translation."""
    calendar = remaining.calendar
    if is_day_and_month(text, context):
        return calendar.months
    if not _DATE.fullmatch(text):
        return ()
    if calendar.n_names < remaining.n_dates:  # a name that is not known is taken on trust
        return range(1, 13)
    year, month, _ = groups_of(text)
    is_year_first = year > 31  # in 2024-05-01 the month is the second group
    return calendar.months & {month} if is_year_first else calendar.months


def _as_word(text: str, context: Context, remaining: _Remaining) -> bool:
    """True if a number is written in words, as "zehntausend"; or a full hour, as "3 Uhr"."""
    plain, left, words = without_grouping(text), remaining.left, remaining.words
    times = evening_times(text, context)
    if plain.isdecimal() and not times:
        return words is not None and len(plain) < 7 and any(map(words.take, _values(int(plain), context)))
    if time := TIME.fullmatch(text):
        times = frozenset({(int(time[1]), int(time[2]))}) if "." not in text else frozenset()
    if {minute for _, minute in times} != {0}:
        return False
    of_day = {same for hour, _ in times for same in (hour, hour % 12, hour % 12 + 12)}
    for hour in sorted(of_day):
        if left[hour] > 0:
            left[hour] -= 1
            return True
        if words is not None and words.take(hour):
            return True
    return False


def has_letters(text: str) -> bool:
    """True if the text contains letters outside protected spans; otherwise its translation is the text itself."""
    if not _MAY_HOLD_SPACES.search(text) and any(len(word) > 2 and word.isalpha() for word in text.split()):
        return True  # the usual case: a word by itself, and no span that holds one
    spans = find(text)
    return any(map(str.isalpha, without_spans(text, spans))) or any(summed(span.text) != span.text for span in spans)


_MAY_HOLD_SPACES = re.compile(r"[\d`<{(+\u00b2\u00b3\u00b9\u00bc-\u00be\u2150-\u218b]")
"""A sign of each protected span that may have a space inside."""

_TIMES = re.compile(r"^\s*\d{1,2}:\d\d(?::\d\d)?[.,]\d{1,3}\s*-->")  # of SubRip and WebVTT
_STATEMENT = re.compile(
    r"^\s*(?:#include\s*[<\"]|@?import\b.*;\s*$|from\s+[\w.]+\s+import\b|(?:async\s+)?def\s+\w+\(|class\s+\w+\s*[({:]|function\b.*\(|"
    r"(?:const|let|var|int|float|double|char|auto|public|private|static)\s++\w[^\n]*[=({;]|(?:if|for|while|switch)\s*\(.*\)\s*\{|"
    r"return\b.*;\s*$|\}|[\w.\[\]>-]+\s*(?:[-+*/|&]?=)\s*\S.*[;)\]}\"']\s*$|[\w.]+(?:->|::|\.)\w+\(.*\)\s*+;?\s*+$)"
)
_CODE = re.compile(r"[;{}()=]")


def not_text(text: str) -> str:
    """Return the text of a warning if a line is clearly no text (subtitle times, code, markup); else ""."""
    if _TIMES.match(text):
        return "subtitle times, not text: give only the lines of text between them"
    if not _CODE.search(text) and "<" not in text:  # the usual case
        return ""
    if _STATEMENT.match(text) and "`" not in text:
        return "code, not text: leave it out, or put it between backticks in a sentence"
    spans = find(text)
    only_markup = spans and all(span.kind == "markup" for span in spans)
    if only_markup and not any(map(str.isalnum, without_spans(text, spans))):
        return "markup, not text: give only the text between the tags"
    return ""


def without_spans(text: str, spans: Sequence[Span]) -> str:
    """Return a text with a space for each span."""
    starts = [*(span.start for span in spans), len(text)]
    ends = [0, *(span.end for span in spans)]
    return " ".join(text[end:start] for end, start in zip(ends, starts, strict=True))
