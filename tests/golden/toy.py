"""The toy text of the golden record: German and Chinese made by rule, with capitals, digits, marks; and hard lines."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

NOUNS = {  # English: gender, German, German plural, Chinese
    "dog": ("m", "Hund", "Hunde", "狗"), "cat": ("f", "Katze", "Katzen", "猫"), "man": ("m", "Mann", "Männer", "男人"),
    "woman": ("f", "Frau", "Frauen", "女人"), "child": ("n", "Kind", "Kinder", "孩子"), "house": ("n", "Haus", "Häuser", "房子"),
    "book": ("n", "Buch", "Bücher", "书"), "tree": ("m", "Baum", "Bäume", "树"), "teacher": ("f", "Lehrerin", "Lehrerinnen", "老师"),
    "train": ("m", "Zug", "Züge", "火车"), "window": ("n", "Fenster", "Fenster", "窗户"), "apple": ("m", "Apfel", "Äpfel", "苹果"),
    "letter": ("m", "Brief", "Briefe", "信"), "street": ("f", "Straße", "Straßen", "街道"), "door": ("f", "Tür", "Türen", "门"),
}  # fmt: skip
VERBS = {
    "sees": ("sieht", "看见"), "finds": ("findet", "找到"), "likes": ("mag", "喜欢"), "buys": ("kauft", "买"),
    "draws": ("zeichnet", "画"), "needs": ("braucht", "需要"), "forgets": ("vergisst", "忘记"),
}  # fmt: skip
ADJECTIVES = {
    "big": ("groß", "大"),
    "small": ("klein", "小"),
    "red": ("rot", "红"),
    "old": ("alt", "旧"),
    "clever": ("klug", "聪明"),
}
ADVERBS = {"today": ("heute", "今天"), "often": ("oft", "经常"), "never": ("nie", "从不"), "here": ("hier", "在这里")}
NAMES = ["Anna", "Bruno", "Clara", "IKEA", "Zoë"]
NOMINATIVE = {"m": ("der", "ein", "er"), "f": ("die", "eine", "e"), "n": ("das", "ein", "es")}
ACCUSATIVE = {"m": ("den", "einen", "en"), "f": ("die", "eine", "e"), "n": ("das", "ein", "es")}
Triple = tuple[str, str, str]
"""English, German, Chinese."""


def sentences(count: int, seed: int) -> list[Triple]:
    """Sentences, each with both translations; only ``random()`` is drawn from, which Python promises to keep."""
    chance = random.Random(seed)
    return [_sentence(chance) for _ in range(count)]


def _pick(chance: random.Random, items: Sequence[str]) -> str:
    return items[int(chance.random() * len(items))]


def _sentence(chance: random.Random) -> Triple:
    kind = chance.random()
    subject, verb, thing = _noun(chance, NOMINATIVE), _pick(chance, [*VERBS]), _noun(chance, ACCUSATIVE)
    de, zh = VERBS[verb]
    if kind < 0.2:  # the adverb comes first, and the verb second
        adverb = _pick(chance, [*ADVERBS])
        when = ADVERBS[adverb]
        return (
            f"{_capital(adverb)} {subject[0]} {verb} {thing[0]}.", f"{_capital(when[0])} {de} {subject[1]} {thing[1]}.",
            f"{when[1]}{subject[2]}{zh}{thing[2]}。",
        )  # fmt: skip
    if kind < 0.35:
        number, noun = str(2 + int(chance.random() * 98)), _pick(chance, [*NOUNS])
        return (
            f"{_capital(subject[0])} {verb} {number} {_plural(noun)}.",
            f"{_capital(subject[1])} {de} {number} {NOUNS[noun][2]}.", f"{subject[2]}{zh}{number}{NOUNS[noun][3]}。",
        )  # fmt: skip
    if kind < 0.5:
        base = verb[:-1]
        return (
            f"Does {subject[0]} {base} {thing[0]}?",
            f"{_capital(de)} {subject[1]} {thing[1]}?",
            (f"{subject[2]}{zh}{thing[2]}吗?"),
        )
    if kind < 0.65:
        name, (en, german, chinese) = _pick(chance, NAMES), _sentence(chance)
        return f'{name} says: "{en}"', f"{name} sagt: „{german}“", f"{name}说:“{chinese}”"
    if kind < 0.75:
        name, other = _pick(chance, NAMES), _pick(chance, NAMES)
        return (
            f"{name} and {other}, {verb} {thing[0]}!",
            f"{name} und {other}, {de} {thing[1]}!",
            (f"{name}和{other},{zh}{thing[2]}!"),
        )
    return (
        f"{_capital(subject[0])} {verb} {thing[0]}.",
        f"{_capital(subject[1])} {de} {thing[1]}.",
        (f"{subject[2]}{zh}{thing[2]}。"),
    )


def _noun(chance: random.Random, case: dict[str, Triple]) -> Triple:
    """A noun with its article, and perhaps an adjective."""
    noun, definite, with_adjective = _pick(chance, [*NOUNS]), chance.random() < 0.7, chance.random() < 0.4
    gender, german, _, chinese = NOUNS[noun]
    article = case[gender][0 if definite else 1]
    if not with_adjective:
        en = f"the {noun}" if definite else f"{_an(noun)} {noun}"
        return en, f"{article} {german}", chinese
    adjective = _pick(chance, [*ADJECTIVES])
    weak = "en" if article == "den" else "e"
    ending = weak if definite else case[gender][2]
    stem = ADJECTIVES[adjective][0]
    en = f"the {adjective} {noun}" if definite else f"{_an(adjective)} {adjective} {noun}"
    return en, f"{article} {stem}{ending} {german}", f"{ADJECTIVES[adjective][1]}{chinese}"


def _an(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _plural(noun: str) -> str:
    return {"man": "men", "woman": "women", "child": "children"}.get(noun, f"{noun}s")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


LONG = " ".join(f"The dog sees the {word}." for word in ("cat", "house", "tree", "book", "door", "train", "window"))
HARD: list[bytes] = [
    b"", b"   ", b"\t", LONG.encode(), LONG.replace(".", "").encode(), b"x" * 90, b"The  dog   sees  the cat .",
    b"  The man likes the house.  ", b"The dog \xff sees the \xc3 cat.", b"The dog\0sees the cat.",
    "The Ω ≈ 北京 sees the 😀.".encode(), "Ünïçødé ẞ ﬁ ½".encode(), b"the dog the dog the dog the dog the dog the dog",
    b"very very very very very very very very very very", b"Anna Bruno Clara IKEA", b"12 345 6789 10,5 0.75",
    b"The woman buys 7 books.\r", b"The woman\rbuys 7 books.", "The▁dog sees\u00a0the\u2028cat.".encode(),
    b"THE DOG SEES THE CAT.", b"the dog sees the cat", b"The dogg sess teh catt.", b"cat", b".", b"?!", b"&amp; <b>dog</b>",
    b"Anna says: \"The dog sees the cat.\" Bruno says: \"The cat never sees the dog.\"", b"www.example.org/a?b=c",
    b"a@example.org", b"The teacher sees the teacher and the teacher.",
]  # fmt: skip
"""What a line can be, beside a sentence."""


def hard_text(n_sentences: int, seed: int) -> bytes:
    """A text to translate: a byte order mark, sentences, the hard lines among them; the last line has no LF."""
    lines = [en.encode() for en, _, _ in sentences(n_sentences, seed)]
    for number, line in enumerate(HARD):
        lines.insert((number + 1) * (len(lines) - number) // (len(HARD) + 1) + number, line)
    return b"\xef\xbb\xbf" + b"\n".join([*lines, b"The cat likes the small dog."])


def tree(en: str) -> str:
    """A flat tree over the words of a sentence, in the manner of the Penn Treebank."""
    words = "".join(c if c.isalnum() or c == " " else f" {c} " for c in en).split()
    groups, group = [], []
    for word in words:
        tag = _tag(word)
        if tag in ("DT", "JJ", "NN", "NNS", "CD", "NNP"):
            group.append(f"({tag} {word})")
            continue
        groups += [f"(NP {' '.join(group)})"] * bool(group)
        group = []
        groups.append(f"(VP ({tag} {word}))" if tag == "VBZ" else f"({tag} {word})")
    groups += [f"(NP {' '.join(group)})"] * bool(group)
    return f"(TOP (S {' '.join(groups)}))"


def _tag(word: str) -> str:
    low = word.lower()
    if low in ("the", "a", "an"):
        return "DT"
    if low in ADJECTIVES:
        return "JJ"
    if low in NOUNS:
        return "NN"
    if low in VERBS or low in ("says", "does") or f"{low}s" in VERBS:
        return "VBZ"
    if low in ADVERBS or low == "and":
        return "RB" if low in ADVERBS else "CC"
    if word.isdecimal():
        return "CD"
    if not word.isalnum():
        return {"?": ".", "!": ".", ".": ".", ",": ",", ":": ":"}.get(word, "``")
    return "NNP" if word in NAMES else "NNS"


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Write lines, each with an LF."""
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
