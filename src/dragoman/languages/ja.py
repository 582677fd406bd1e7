"""Japanese."""

from __future__ import annotations

import re

from dragoman.languages.language import Clock, Language, NumberWords
from dragoman.languages.sentence_ends import SPEECH_CLOSERS
from dragoman.languages.zh import HOURS, LONGER, spelled

_PARTICLE = re.compile(r"と|って|を|など|なんて|[はがにのもでへ](?=[\u3400-\u9fff\u30a1-\u30fa])|[はに]、")


def is_quoted(tail: str, piece: str) -> bool:
    """True if the text so far ends in a quotation, and the next piece reports it (と, って) or is about it (を, は)."""
    return tail.rstrip()[-1:] in SPEECH_CLOSERS and _PARTICLE.match(piece) is not None


LANGUAGE = Language(
    code="ja",
    name="Japanese",
    scripts=("kana", "han"),
    spaces=False,
    family="han",
    letters="\u3040-\u30fa\u30fc-\u30ff",  # the dot between is of Chinese names too
    continues=is_quoted,
    numbers=NumberWords(
        stems="零 一|初 二|両 三 四 五 六 七 八 九 十 十一 十二",
        spelled=spelled,
        longer=LONGER,
        limit=10**12,
    ),
    clock=Clock(
        signs="時半 時三 時十 時四",
        hours=HOURS,
        spoken=((30, "H時(?:半|三十分)"), (-15, "H時十五分前"), (15, "H時十五分"), (45, "H時四十五分")),
        full=rf"(?:午[前後]|(?=\d))H時(?!{LONGER}|\d|[半間代])",  # 一時 is "for a time"
    ),
)
