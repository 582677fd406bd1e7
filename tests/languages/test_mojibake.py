"""Text that was read in a wrong encoding or escaped for a web page, and right text that looks like it."""

from __future__ import annotations

import pytest

from dragoman.languages.scripts import has_entity, has_mojibake, without_entities, without_mojibake


@pytest.mark.parametrize(
    "text",
    [
        "“BOM DIA, IRMÃ”",
        "AMANHÃ… TALVEZ",
        "LÃ–ALGODÃO",
        "‘MAÇÃ’",
        "‘LA INMACULADA CONCEPCIÑ”",
        "„ORÐ“",
        "VERÐ… OG BORÐ–",
        "«MINHA IRMÃ»",
        "BYEN PÅ…",
        "IKEÅ™ er et varemerke",
        "A letra “Ã” tem um til.",
        "„Ich vergaß“, sagte er",
    ],
)
def test_a_capital_before_a_mark_is_text(text: str) -> None:
    assert not has_mojibake(text)
    assert without_mojibake(text) == text


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("schÃ¶n", "schön"),
        ("Ã–tzi", "Ötzi"),
        ("Ã“ Briain", "Ó Briain"),
        ("PÅ™edloha", "Předloha"),
        ("IÃ”TA", "IÔTA"),
        ("TÃœR", "TÜR"),
        ("SCHÃ–N UND GRÃœN", "SCHÖN UND GRÜN"),
        ("sÄ…", "są"),
        ("cÅ“ur trÃ¨s", "cœur très"),
        ("Ùˆ Ø§Ù„", "و ال"),
        ("trÃ¨s „vergaß“", "très „vergaß“"),
    ],
)
def test_mojibake_is_decoded_and_what_stands_beside_it_is_not(wrong: str, right: str) -> None:
    assert has_mojibake(wrong)
    assert without_mojibake(wrong) == right


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ("http://x.org/?a=1&copy=2&reg=3", None),
        ("?a=1&copying;&notit;", None),
        ("&amp;copy=2", "&copy=2"),
        ("&amp;quot;Hi&amp;quot;", '"Hi"'),
        ("&amp;amp;#39;n", "'n"),
        ("rock &amp; roll &#39;n", "rock & roll 'n"),
        ("see http://x.org/?a=1&copy=2 &lt;here&gt;", "see http://x.org/?a=1&copy=2 <here>"),
    ],
)
def test_entities_end_with_a_semicolon_and_are_decoded_as_often_as_they_were_escaped(
    text: str, decoded: str | None
) -> None:
    assert has_entity(text) is (decoded is not None)
    assert without_entities(text) == (decoded or text)
    assert not has_entity(without_entities(text))
