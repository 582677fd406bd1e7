"""Words of many scripts, from the names that CLDR has for languages and countries, and the places inside them.

    for script, words in words_by_script().items():
        for word in words:
            places_inside(word)      # where no word may begin or end

A second set is made by rule, for scripts that CLDR has no names in: letters, vowel signs and viramas of one script.
"""

from __future__ import annotations

import random
import unicodedata
from functools import cache
from itertools import islice

import regex
from babel import Locale

SEED = 40
LONGEST = 24  # characters of a word
WORDS = 24  # of each script
MADE_WORDS = 12

LOCALES = (
    "am bn bo ccp chr csw de dz el el_POLYTON en_Dsrt en_Shaw fa ff_Adlm gu he hi hnj hy ii ja ka km kn ko ks lo ml "
    "mn_Mong_MN my ne nqo or osa pa ru sat si syr ta te th vai vi yi yue zgh"
)

MADE = (
    "AHOM BALINESE BATAK BRAHMI BUGINESE BUHID CHAM GRANTHA HANUNOO JAVANESE KAITHI KHAROSHTHI KHOJKI KHUDAWADI LEPCHA "
    "LIMBU MEETEI MODI NEWA PHAGS-PA REJANG SAURASHTRA SHARADA SIDDHAM SOYOMBO SUNDANESE SYLOTI TAGALOG TAGBANWA "
    "TAKRI TIRHUTA THAANA MANDAIC SAMARITAN HANIFI WANCHO MIAO GUNJALA MASARAM DIVES NANDINAGARI ZANABAZAR CHORASMIAN"
)
"""First words of the names that Unicode gives the characters of further scripts."""

_CLUSTER = regex.compile(r"\X")
JOINERS = "\u200c\u200d\u00ad\u2060"
_STACKERS = ("MYANMAR SIGN VIRAMA", "COENG", "SAKOT", "PANGKON", "ADEG ADEG", "CONJOINER")
_LEADING = frozenset("เแโใไເແໂໃໄ")  # vowels written before their consonant
_FOLLOWING = frozenset("ะาำๅະາຳ")
UNSPACED = (
    "CJK HIRAGANA KATAKANA KATAKANA-HIRAGANA THAI LAO MYANMAR KHMER YI BOPOMOFO JAVANESE BALINESE AHOM IDEOGRAPHIC TAI"
)
"""Scripts without spaces: a word may end between two clusters of them."""


@cache
def words_by_script() -> dict[str, list[str]]:
    """Return the words of each script, some with an invisible joiner put in; the same in every run."""
    by_script: dict[str, dict[str, None]] = {}
    for code in LOCALES.split():
        locale = Locale.parse(code)
        names = " ".join([*locale.languages.values(), *locale.territories.values()]).replace("\u0f0b", " ")
        for word in names.split():
            if 1 < len(word) <= LONGEST and word[0].isalpha():
                by_script.setdefault(script_of(word[0]), {})[word] = None
    chance = random.Random(SEED)
    words = {script: _drawn(sorted(words), chance) for script, words in sorted(by_script.items())}
    for script in MADE.split():
        words[script] = _made(script, chance)
    return {script: [*some, *(_with_joiner(word, chance) for word in some[:6])] for script, some in words.items()}


def script_of(character: str) -> str:
    """Return the first word of a character's name, which is that of its script."""
    return unicodedata.name(character, "UNKNOWN").split()[0]


def _is_word(word: str) -> bool:
    is_one = all(unicodedata.category(character)[0] in "LM" or character in JOINERS for character in word)
    return is_one and len(_CLUSTER.findall(word)) > 1


def _drawn(words: list[str], chance: random.Random) -> list[str]:
    """Return some words of a script, half of them with marks if it has such."""
    chance.shuffle(words)
    marked = list(islice((word for word in words if not word.isalpha() and _is_word(word)), WORDS // 2))
    plain = (word for word in words if word not in marked and _is_word(word))
    return [*marked, *islice(plain, WORDS - len(marked))]


@cache
def _characters() -> dict[str, tuple[list[str], list[str]]]:
    """Return the letters and the marks of each script in ``MADE``."""
    by_script: dict[str, tuple[list[str], list[str]]] = {script: ([], []) for script in MADE.split()}
    for code in (*range(0x700, 0x2000), *range(0xA800, 0xAC00), *range(0x10A00, 0x17000), *range(0x1E2C0, 0x1E300)):
        name, is_mark = unicodedata.name(chr(code), ""), unicodedata.category(chr(code))[0] == "M"
        script = name.partition(" ")[0]
        if script in by_script and ("LETTER" in name or is_mark):
            by_script[script][is_mark].append(chr(code))
    return by_script


def _made(script: str, chance: random.Random) -> list[str]:
    """Return words of letters and marks of a script, drawn at random."""
    letters, marks = _characters()[script]
    words: list[str] = []
    while len(words) < MADE_WORDS:
        word = ""
        for _ in range(2 + int(3 * chance.random())):
            word += chance.choice(letters) + (chance.choice(marks) if marks and chance.random() < 0.7 else "")
        if len(_CLUSTER.findall(word)) > 1:
            words.append(word)
    return words


def _with_joiner(word: str, chance: random.Random) -> str:
    """Return a word with an invisible joiner between two of its letters or clusters."""
    places = [match.start() for match in _CLUSTER.finditer(word)][1:]
    place = chance.choice(places)
    return word[:place] + chance.choice(JOINERS) + word[place:]


def is_spaced(word: str) -> bool:
    """True if the script of a word puts spaces between words."""
    return script_of(next(character for character in word if character.isalpha())) not in UNSPACED.split()


def places_inside_clusters(word: str) -> set[int]:
    """Return the places in a word where no text may be cut, by rules that know nothing of the product.

    They are those inside grapheme clusters, right before a mark, after a virama that joins the next letter to it, and
    between a vowel and the consonant that it is written with.
    """
    inside = {place for match in _CLUSTER.finditer(word) for place in range(match.start() + 1, match.end())}
    for place in range(1, len(word)):
        left, right = word[place - 1], word[place]
        name = unicodedata.name(left, "")
        stacks = any(part in name for part in _STACKERS) and not is_spaced(word) and right.isalpha()
        if unicodedata.category(right)[0] == "M" or stacks or left in _LEADING or right in _FOLLOWING:
            inside.add(place)
    return inside


def places_inside(word: str) -> set[int]:
    """Return the places in a word where no word may begin or end.

    They are those inside clusters and on both sides of a joiner; in a script with spaces all places.
    """
    if is_spaced(word):
        return set(range(1, len(word)))
    joined = {place for place in range(1, len(word)) if {word[place - 1], word[place]} & set(JOINERS)}
    return joined | places_inside_clusters(word)
