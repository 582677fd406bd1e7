"""Inputs for judging sentence ends, language tags and language detection, drawn from Django's and Babel's catalogues.

    from benchmarks.language_inputs import short_texts
    short_texts(seed=1)[0]    # ShortText("Sonntagabend", "de")

Every input follows from a rule and a seed, so that its sum (``digest``) tells if two measurements used the same.
"""

from __future__ import annotations

import functools
import gettext
import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SHORT_LANGUAGES = [
    "en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "pl", "cs", "ru", "uk", "tr", "fi", "hu", "ar", "hi", "zh", "ja",
]  # fmt: skip
"""Languages of the short texts."""

NEIGHBOURS = [
    "nb", "nn", "gl", "ca", "sk", "hr", "sl", "bg", "sr", "mk", "id", "ro", "et", "fa", "ur", "az",
]  # fmt: skip
"""Languages like those: a text that is written alike in two languages is not judged."""

_LOCALES = {"zh": "zh_Hans", "zh-Hant": "zh_Hant", "sr": "sr"}
_UNSPACED = {"zh", "ja", "th", "my", "km", "lo", "bo", "dz", "zh-Hant", "yue"}
_ODD = re.compile(r"[%{}<>&\d|@/_\\=\n\"“”„«»()\[\]:;…]")


@dataclass(frozen=True)
class ShortText:
    """A text of one to four words."""

    text: str
    lang: str


@dataclass(frozen=True)
class TwoSentences:
    """Two sentences on a line: the text is ``first + second``."""

    lang: str
    first: str
    second: str


def digest(entries: Iterable[object]) -> str:
    """Return the SHA-256 of entries, as text, one a line."""
    return hashlib.sha256("\n".join(map(repr, entries)).encode()).hexdigest()


def _catalogues(code: str) -> list[Path]:
    import django

    root = Path(django.__file__).parent
    locale = _LOCALES.get(code, code.replace("-", "_"))
    folders = [root / "conf", *sorted(path for path in (root / "contrib").iterdir() if path.is_dir())]
    files = [folder / "locale" / locale / "LC_MESSAGES" / "django.mo" for folder in folders]
    return [file for file in files if file.is_file()]


@functools.cache
def django_texts(code: str) -> tuple[str, ...]:
    """Return the translated texts of Django in a language, without those that are the English ones."""
    texts: dict[str, None] = {}
    if code == "en":
        return english_texts()
    for path in _catalogues(code):
        with path.open("rb") as file:
            catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]  # has no public name
        for key, text in catalogue.items():
            source = key if isinstance(key, str) else key[0]
            if source and text and source.split("\x04")[-1] != text:
                texts[text] = None
    return tuple(texts)


@functools.cache
def english_texts() -> tuple[str, ...]:
    """Return Django's English texts: those that its German catalogues translate."""
    texts: dict[str, None] = {}
    for path in _catalogues("de"):
        with path.open("rb") as file:
            catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]  # has no public name
        texts.update(dict.fromkeys(key.split("\x04")[-1] for key in catalogue if isinstance(key, str)))
    texts.pop("", None)
    return tuple(texts)


@functools.cache
def cldr_texts(code: str) -> tuple[str, ...]:
    """Return the names of territories, languages, currencies, months and days of CLDR in a language."""
    from babel import Locale

    locale = Locale.parse(_LOCALES.get(code, code.replace("-", "_")))
    names = [name for key, name in locale.territories.items() if not key.isdigit()]
    names += [*locale.languages.values(), *locale.currencies.values()]
    names += [*locale.months["format"]["wide"].values(), *locale.days["format"]["wide"].values()]
    return tuple(dict.fromkeys(names))


def n_words(text: str, code: str) -> int:
    """Return the number of words; in a language without spaces two characters count as a word."""
    return -(-len(text) // 2) if code in _UNSPACED else len(text.split())


def _usable(text: str, code: str) -> bool:
    return not _ODD.search(text) and sum(map(str.isalpha, text)) >= 2 and text == text.strip() and "  " not in text


@functools.cache
def _owners() -> Counter[str]:
    """Return the number of languages in which a text occurs, regardless of case."""
    owners: Counter[str] = Counter()
    for code in (*SHORT_LANGUAGES, *NEIGHBOURS):
        owners.update({text.casefold() for text in (*django_texts(code), *cldr_texts(code))})
    return owners


@functools.cache
def short_texts(seed: int = 1, per_cell: int = 5) -> tuple[ShortText, ...]:
    """Return texts of 1 to 4 words in ``SHORT_LANGUAGES``: ``per_cell`` of each length and source, in each language.

    The texts are those of one language only. Seeds 1 and 2 draw disjoint parts: texts whose digest is even or odd.
    """
    drawn = []
    for code in SHORT_LANGUAGES:
        for source in (django_texts(code), cldr_texts(code)):
            texts = [
                text for text in source
                if _usable(text, code) and _owners()[text.casefold()] == 1 and _part(text) == seed % 2
            ]  # fmt: skip
            for length in (1, 2, 3, 4):
                cell = [text for text in texts if n_words(text, code) == length]
                random.Random(f"{seed} {code} {length}").shuffle(cell)
                drawn += [ShortText(text, code) for text in cell[:per_cell]]
    return tuple(drawn)


def _part(text: str) -> int:
    return hashlib.sha256(text.casefold().encode()).digest()[0] % 2


GREETINGS = {
    "en": "hello, good morning, good evening, thank you, how are you, see you tomorrow",
    "de": "hallo, guten Morgen, guten Abend, danke schön, wie geht's dir, bis morgen",
    "fr": "salut, bonjour, bonsoir, merci beaucoup, comment ça va, à demain",
    "es": "hola, buenos días, buenas noches, muchas gracias, cómo estás, hasta mañana",
    "it": "ciao, buongiorno, buona sera, grazie mille, come stai, a domani",
    "pt": "olá, bom dia, boa noite, muito obrigado, como está, até amanhã",
    "nl": "goedemorgen, goedenavond, dank je wel, hoe gaat het, tot morgen, alsjeblieft",
    "sv": "god morgon, god kväll, tack så mycket, hur mår du, vi ses imorgon, välkommen",
    "da": "god morgen, god aften, mange tak, hvordan går det, vi ses i morgen, velkommen",
    "pl": "cześć, dzień dobry, dobry wieczór, dziękuję bardzo, jak się masz, do jutra",
    "cs": "ahoj, dobrý den, dobrý večer, děkuji moc, jak se máš, na shledanou",
    "ru": "привет, доброе утро, добрый вечер, большое спасибо, как дела, до завтра",
    "uk": "привіт, доброго ранку, добрий вечір, дуже дякую, як справи, до завтра",
    "tr": "merhaba, günaydın, iyi akşamlar, teşekkür ederim, nasılsın, yarın görüşürüz",
    "fi": "hei, hyvää huomenta, hyvää iltaa, kiitos paljon, mitä kuuluu, nähdään huomenna",
    "hu": "szia, jó reggelt, jó estét, köszönöm szépen, hogy vagy, viszontlátásra",
    "ar": "مرحبا, صباح الخير, مساء الخير, شكرا جزيلا, كيف حالك, إلى اللقاء",
    "hi": "नमस्ते, सुप्रभात, शुभ संध्या, बहुत धन्यवाद, आप कैसे हैं, फिर मिलेंगे",
    "zh": "你好, 早上好, 晚上好, 非常感谢, 你好吗, 明天见",
    "ja": "こんにちは, おはよう, こんばんは, ありがとうございます, お元気ですか, また明日",
}
"""Greetings of our own: six a language."""


def greetings() -> list[ShortText]:
    """Return the greetings, except those that are written alike in two of the languages."""
    texts = [ShortText(text.strip(), code) for code, line in GREETINGS.items() for text in line.split(",")]
    owners = Counter(text.text for text in texts)
    return [text for text in texts if owners[text.text] == 1]


# --- sentences --------------------------------------------------------------------------------------------------------

ENDS = {
    **dict.fromkeys(["hi", "mr", "ne", "sa", "bn", "as", "or"], "।"), "pa": "।", "my": "။", "km": "។", "bo": "།", "dz": "།",
    **dict.fromkeys(["am", "ti"], "።"), "hy": "։", **dict.fromkeys(["ur", "ks"], "۔"), "sat": "᱾", "mni": "।",
    "mni-Mtei": "꯫", "mn-Mong": "᠃", "nqo": ".", "vai": "꘎", "jv-Java": "꧉", "ban-Bali": "᭞", "si": ".",
    **dict.fromkeys(["zh", "ja", "zh-Hant", "yue"], "。"), "ccp": "𑅁", "cop": "⳹", "syr": ".", "ff-Adlm": ".", "lif": "᥄",
}  # fmt: skip
"""The mark that ends a sentence, as native writers set it; "." for all other languages."""

SENTENCE_LANGUAGES = [
    "en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "pl", "cs", "ru", "uk", "tr", "fi", "hu", "ar", "hi", "zh", "ja",
    "bg", "bn", "ca", "da", "el", "et", "eu", "fa", "gl", "he", "hr", "hy", "id", "is", "ka", "kk", "kn", "ko", "lt", "lv",
    "mk", "ml", "mr", "my", "ne", "pa", "ro", "sk", "sl", "sr", "sq", "ta", "te", "ur", "vi", "km", "bo", "dz", "am", "ti",
    "sat", "vai", "si", "yue", "zh-Hant", "as", "or", "ccp", "nqo", "ks", "uz", "az", "sw",
]  # fmt: skip
"""Languages with texts in Django's or Babel's catalogues."""

FOREIGN_ENDS = "．｡！？։۔؟।॥။።፧។៕༎།᱾꯫᠃߹꘎꘏꧉᭞᭟෴𑅁᜶᪨⳹𑱁"
"""Ends of sentences in other scripts: between two texts in letters of that script's language or any other."""


@functools.cache
def two_sentences(seed: int = 1, per_language: int = 8) -> tuple[TwoSentences, ...]:
    """Return pairs of sentences: two strings of three words or more, joined by the end of a sentence.

    In a script with spaces a space follows the end. In scripts with capitals the second string begins with one.
    """
    drawn = []
    for code in dict.fromkeys(SENTENCE_LANGUAGES):
        texts = _strings(code)
        generator = random.Random(f"{seed} {code}")
        for _ in range(per_language):
            first, second = (_capitalised(generator.choice(texts)) for _ in range(2))
            end = ENDS.get(code, ".") + ("" if code in {"zh", "ja", "zh-Hant", "yue"} else " ")
            drawn.append(TwoSentences(code, first + end, second + end.strip()))
    return tuple(drawn)


def _strings(code: str) -> list[str]:
    """Return strings of three words or more, of Django if it has twenty, else names of CLDR, joined."""
    bare = [text.rstrip(".。।!?！？۔։။።") for text in django_texts(code)] if _catalogues(code) else []
    texts = [
        text for text in bare if _usable(text, code) and n_words(text, code) >= 3 and not _ENDS_INSIDE.search(text)
    ]
    if len(texts) >= 20:
        return sorted(set(texts))
    names = [text for text in cldr_texts(code) if _usable(text, code) and not _ENDS_INSIDE.search(text)]
    return sorted({" ".join(names[i : i + 3]) for i in range(0, len(names) - 3, 3)})


_ENDS_INSIDE = re.compile(r"[.!?؟։۔።။。।།༎！？។៕]")


def _capitalised(text: str) -> str:
    first = text[0].upper()
    return text if "\u1c90" <= first <= "\u1cbf" else first + text[1:]  # Georgian sentences begin with no capital


def not_ends() -> Sequence[tuple[str, str]]:
    """Return texts of one sentence, each with its language: abbreviations, numbers, quotations, dots."""
    return [
        ("en", "Dr. Smith paid 3.50 for it."), ("en", "He waited... then left."), ("en", 'He said "Go. Now." and left.'),
        ("en", "See www.example.com/a.b for v1.2.3."), ("de", "Das kostet z. B. 3.000,50 Euro."), ("de", "Am 3. Mai war es so."),
        ("fr", "M. Dupont a payé 3,50 €."), ("zh", "他说“好。我去。”"), ("zh", "圆周率约为３．１４１５。"), ("ja", "「はい。」と言った。"),
        ("ja", "バージョン２．０です。"), ("my", "မောင်မောင်၊ အေးအေး၊ လှလှ တို့သွားသည်။"), ("hi", "(यह है। वह है।)"), ("km", "«គាត់ទៅ។ គាត់មក។»"),
        ("en", "The codepoint 3。5 is odd."), ("hi", "डॉ. शर्मा ने 3.5 किलो खरीदा।"), ("bo", "༄༅། །"), ("km", "។ល។"), ("th", "เขาไปบ้าน และ เธอมา"),
        ("lo", "ລາວໄປເຮືອນ ແລະ ນາງມາ"), ("el", "Ο κ. Παπαδόπουλος πλήρωσε 3,50."), ("km", "ផ្លែឈើ បន្លែ ។ល។ នៅផ្សារ។"),
    ]  # fmt: skip


# --- tags -------------------------------------------------------------------------------------------------------------


@functools.cache
def same_tags() -> tuple[tuple[str, str], ...]:
    """Return pairs of tags that mean the same language and script, by CLDR's aliases and likely subtags.

    Of languages with a code of two letters, each is written in full, short, with POSIX's underscore and encoding.
    """
    from babel.core import get_global

    likely, pairs = get_global("likely_subtags"), []
    for short, full in sorted(likely.items()):
        lang, script, region = ([*full.split("_"), "", ""])[:3]
        if len(lang) != 2 or not short.startswith(lang) or len(short) > 7 or lang == "un":
            continue
        pairs += [(short, full), (f"{lang}-{script}", full), (f"{lang}_{script}.UTF-8", full)]
        if short == lang:
            pairs.append((f"{lang}_{region}.UTF-8@euro", full))
    for old, new in sorted(get_global("language_aliases").items()):
        if len(new) == 2 and new in likely and len(old) <= 3:
            pairs.append((old, likely[new]))
    return tuple(dict.fromkeys(pairs))


@functools.cache
def other_scripts() -> tuple[tuple[str, str], ...]:
    """Return pairs of tags of one language in two scripts, by CLDR's likely subtags."""
    from babel.core import get_global

    scripts: dict[str, dict[str, str]] = {}
    for short, full in sorted(get_global("likely_subtags").items()):
        lang, script, _ = ([*full.split("_"), "", ""])[:3]
        if len(lang) == 2 and short.startswith(lang) and len(script) == 4:
            scripts.setdefault(lang, {}).setdefault(script, short)
    return tuple(
        (one, other) for forms in scripts.values() for one in forms.values() for other in forms.values() if one < other
    )


AS_USERS_WRITE = {
    "zh-TW": "zh-Hant", "zh-HK": "zh-Hant", "zh_Hans_CN": "zh", "zh-cn": "zh-Hans", "ZH-HANS": "zh", "zh-SG": "zh-Hans",
    "zt": "zh-Hant", "zho": "zh", "chi": "zh", "cmn": "zh", "cmn-Hant": "zh-TW", "zh-yue": "yue", "pt-br": "pt", "pb": "pt-BR",
    "PT-PT": "pt", "EN-GB": "en", "en_US.UTF-8": "en", "eng": "en", "deu": "de", "ger": "de", "de_AT@euro": "de", "fil": "tl",
    "tl": "fil", "tgl": "fil", "iw": "he", "heb": "he", "in": "id", "ji": "yi", "no": "nb", "nb": "no", "nn": "no",
    "mo": "ro", "mol": "ro", "sh": "sr-Latn", "sr-ME": "sr-Latn", "scr": "hr", "eng_Latn": "en", "zho_Hant": "zh-TW", "kaz_Cyrl": "kk",
    "jw": "jv", "swe": "sv", "cze": "cs", "srp_Cyrl": "sr", "cmn_Hans": "zh-CN", "arb_Arab": "ar", "pes_Arab": "fa", "als_Latn": "sq",
}  # fmt: skip
"""Tags as people and programs write them, and a tag that must be taken for the same."""

NOT_THE_SAME = [
    ("zh-TW", "zh"), ("zh-Hant", "zh-CN"), ("zt", "zh"), ("ZH-HANT", "ZH-HANS"), ("sr-Latn", "sr"), ("sh", "sr-Cyrl"), ("az-Cyrl", "az"),
    ("yue", "zh"), ("uz-Cyrl", "uz-Latn"), ("pa-PK", "pa"), ("mn-Mong", "mn"), ("hr", "sr"), ("de", "nl"), ("kk-CN", "kk"), ("id", "ms"),
    ("ku-Arab", "ku"), ("tg-Arab", "tg"), ("nn", "nb"), ("zho_Hant", "zho_Hans"), ("gsw", "de"), ("C", "ca"),
]  # fmt: skip
"""Pairs of tags that must not be taken for each other."""
