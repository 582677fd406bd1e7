"""Chinese."""

from __future__ import annotations

from dragoman.languages.language import Clock, Language, NumberWords

DIGITS = "零〇一二三四五六七八九十百千万萬亿億两兩"
LONGER = f"[{DIGITS}]"

HOURS = (
    "一 二|两|兩 三 四 五 六 七 八 九 十 十一 十二 十三 十四 十五 十六 十七 十八 十九 二十 二十一 二十二 二十三 二十四"
)
"""Words for 1 to 24."""


def spelled(n: int) -> str:
    """Return the pattern of a number below 10^12 in Chinese characters, by places or digit by digit."""
    digits = "零一二三四五六七八九"
    one_by_one = "".join("[零〇]" if digit == "0" else digits[int(digit)] for digit in str(n))
    by_places = ""
    for size, name in ((100_000_000, "[亿億]"), (10_000, "[万萬]"), (1000, "千"), (100, "百"), (10, "十"), (1, "")):
        count, remainder = n // size, n % size
        if count:
            word = spelled(count) if count > 9 else digits[count]
            word = "[二两兩]" if word == "二" and size > 10 else "(?:一)?" if word == "一" and size >= 10 else word
            by_places += word + name
            # a zero is spoken where a place is empty: 一百零一
            by_places += "[零〇]?" if remainder and remainder < size // 10 else ""
        n = remainder
    return f"(?:{by_places}|{one_by_one})"


LANGUAGE = Language(
    code="zh",
    name="Chinese",
    scripts=("han",),
    dialects=("yue", "wuu", "lzh"),  # Cantonese, Wu, literary Chinese
    spaces=False,
    family="han",
    letters="\u3400-\u9fff",
    numbers=NumberWords(
        stems="零|〇 一|首|第一 二|两|兩|双 三 四 五 六 七 八 九 十 十一 十二",
        spelled=spelled,
        longer=LONGER,
        limit=10**12,
    ),
    clock=Clock(
        signs="刻 " + " ".join(f"{hour}{minutes}" for hour in "点點时時钟鐘" for minutes in "半三十四"),
        hours=HOURS,
        spoken=(
            (30, f"H[点點时時][鐘钟]?(?:半(?![点點])|三十(?!{LONGER}))"),
            (15, "H[点點时時][鐘钟]?(?:一刻|十五)"),
            (45, "H[点點时時][鐘钟]?(?:三刻|四十五)"),
            (-15, "差一刻(?:到)?H[点點时時]"),
        ),
        # 一点 is "a little", 两点 "two points": words alone are no sure hours
        full=rf"(?:(?:[上下]午|早上|晚上|凌晨)(?!一[点點])|(?=\d))H[点點](?!{LONGER}|\d|[半多吗嗎])",
    ),
)
