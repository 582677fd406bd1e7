"""English."""

from __future__ import annotations

from dragoman.languages.language import Clock, Language, NumberWords

_0_TO_16 = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_17_TO_90 = "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS = [*_0_TO_16.split(), *_17_TO_90.split()]
_ORDINALS = {1: "first", 2: "second", 3: "third", 5: "fifth", 9: "ninth"}
LONGER = rf",?(?: and)?(?:[- ](?:{'|'.join(_WORDS)}|hundred|thousand)|-(?:{'|'.join(_ORDINALS.values())}))\b"


def spelled(n: int) -> str:
    """Return the pattern of a number below a million in words, such as ``twent(?:y|ie)[- ]?(?:one|first)``."""
    if n < 20:
        return f"(?:{_WORDS[n]}|{_ORDINALS[n]})" if n in _ORDINALS else _WORDS[n]
    if n < 100:
        tens = f"{_WORDS[18 + n // 10][:-1]}(?:y|ie)"  # twenty, twentieth, the twenties
        return tens + (f"[- ]?{spelled(n % 10)}" if n % 10 else "")
    size, name = (100, "hundred") if n < 1000 else (1000, "thousand")
    count = "(?:one|a)" if n // size == 1 else spelled(n // size)
    return f"{count}[- ]{name}" + (f",?(?: and)?[- ]{spelled(n % size)}" if n % size else "")


_AT = "(?:at|till|until|is|was|['’]s) "
_NO_NUMBER = "(?! (?:hundred|thousand|[mb]illion|half|halves|thirds?|quarters?|fourths?|per ?cent)\\b)"
_NO_NOUN = (
    "(?=$|[.,;:!?)]| (?:in|on|this|today|tomorrow|tonight|yesterday|and|or|every|sharp|to|till|until|[ap]\\.?m)\\b)"
)

LANGUAGE = Language(
    code="en",
    name="English",
    scripts=("latin",),
    articles="a an the",
    stop_words=(
        "the and of to is that it for you with are this have not be at they from what he she his her which their we "
        "your there would been has had my how when who i do did don by or all an about"
    ),
    titles="Amb|Atty",
    no_abbreviations="art|[Mm]e|OK|[Nn]o|ill|[Mm]ay|ID|sec|miss|fed|op|LA",
    numbers=NumberWords(
        stems=(
            "zero one|first two|second|twice three|third four five|fifth six seven eight nine|ninth ten eleven "
            "twelve|twelfth"
        ),
        spelled=spelled,
        longer=LONGER,
    ),
    clock=Clock(
        signs="half quarter fifteen thirty forty",
        hours="one two three four five six seven eight nine ten eleven twelve|noon|midday|midnight",
        spoken=(
            (30, "half[ -]past H"),
            (15, "quarter past H"),
            # "by a quarter to 5 million", "from a quarter to one third"
            (15, f"{_AT}(?:a )?quarter after H{_NO_NUMBER}"),
            (-15, f"{_AT}(?:a )?quarter (?:to|till?|before) H{_NO_NUMBER}"),
            # British; "in half 4 times" and "by half 2 days later" are no times
            (30, f"(?:at|till|until) half H{_NO_NOUN}"),
        ),
        perhaps=(
            (30, "half after H"),
            (15, "quarter after H"),
            (-15, "quarter (?:to|till?|before|of) H"),
            (30, f"(?:around|about|by|before|after|from|since) half H{_NO_NOUN}"),
            (15, "H[ -]fifteen"),
            (30, "H[ -]thirty"),
            (45, "H[ -]forty-five"),
        ),
        full=r"H(?: o['’]clock| ?[ap]\.?m\b)",
    ),
)
