"""Ways that are shorter for the usual text give what the plain ways give."""

from __future__ import annotations

import random
from dataclasses import replace

from dragoman.documents import markup
from dragoman.documents.subtitles.tokens import Token, strip, strip_always
from dragoman.documents.tags.pieces import WORDLESS, has_words
from dragoman.documents.units import AlignedText, Translations, write
from dragoman.translation.keeping.protected import find, has_letters, without_spans

SEED = 41
TOKENS = [
    "dog", "The", "May", "3", "5.", "½", "III", "²", "`a dog`", "``x", "y``", "<a dog>", "<b", "c>", "<!-- a dog -->", "&amp;",
    "&copy", "{a, plural, other {b dog}}", "{name}", "{{", "}}", "%s", "%(n)d", "%USER%", "$HOME", "[DOG]", "__x__", ":dog:",
    ":D", "xD", "XD", "<3", "3️⃣", "#dog", "@dog", "a@b.org", "www.a.org", "http://a.org/b c", "a/b/c.txt", "/a/b/", "C:\\dog",
    "run()", "a_b", "v1.2", "A4", "COVID-19", "0af3c2d", "+49 30 123456", "(030) 12345", "12:30", "20 million", "3. May 2020",
    "550e8400-e29b-41d4-a716-446655440000", "狗", "跑了。", "dog-house", "-", "…", "♪", "(dog", "dog)", "[", "]", "10 km", "№",
]  # fmt: skip


def texts() -> list[str]:
    """Texts of one to four of the tokens, drawn with a seed, with and without spaces between them."""
    chance = random.Random(SEED)
    drawn = [chance.choices(TOKENS, k=chance.randint(1, 4)) for _ in range(6000)]
    return [*TOKENS, *(chance.choice(" ,:").join(own) for own in drawn)]


def test_letters_outside_spans() -> None:
    for text in texts():
        assert has_letters(text) == any(map(str.isalpha, without_spans(text, find(text)))), text


def test_words_outside_code() -> None:
    for text in texts():
        spans = [span for span in find(text) if span.kind in WORDLESS]
        assert has_words(text) == any(map(str.isalnum, without_spans(text, spans))), text


def test_what_encloses_a_caption() -> None:
    for text in texts():
        assert strip([Token(text, text=text)]) == strip_always([Token(text, text=text)]), text


def test_places_that_are_kept_from_an_earlier_writing() -> None:
    parts = markup.parse("a <b>dog <i>runs</i></b> <x/> home<p>a dog", "html")
    translations = Translations({
        "a dog runs home": AlignedText("W3 W2 W1 W0", ((0, 3), (1, 2), (2, 1), (3, 0))), "a dog": AlignedText("W1 W0"),
    })  # fmt: skip
    first = write(parts, translations)
    assert translations.placed
    assert write(parts, translations) == first == write(parts, replace(translations, placed={}))
    others = replace(translations, by_text={"a dog runs home": AlignedText("V0", ((0, 0),)), "a dog": AlignedText("V")})
    assert write(parts, others) == write(parts, replace(others, placed={}))
