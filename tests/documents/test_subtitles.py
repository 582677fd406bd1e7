"""Subtitles: whose words stand in which caption, lines and reading speed, and captions that are not well-formed.

Translations are made by stand-ins of a model: ``letters`` writes Cyrillic letters, ``reversed`` reverses the words too.
"""

from __future__ import annotations

import itertools
import re

import pytest

from benchmarks.real_documents.stand_ins import STAND_INS, deciphered, translations
from benchmarks.real_documents.subtitles import by_style
from dragoman.documents import opening
from dragoman.documents.document import DocumentInfo, DocumentOptions
from dragoman.documents.subtitles.cues import Piece
from dragoman.documents.subtitles.lines import break_places, broken, width
from dragoman.documents.subtitles.sentences import sentences_of
from dragoman.documents.subtitles.tokens import Token, label_end, split, strip, text_of, turns_in
from dragoman.documents.subtitles.ttml import read_paragraphs
from dragoman.documents.translate import finishing
from dragoman.errors import DataError
from dragoman.translation.assemble import Translation

LAYERS = "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text"


def translated(
    source: str | bytes, name: str = "a.srt", mode: str = "letters", lang: str = "en", **options: object
) -> tuple[str, list[list[str]], list[str]]:
    """Return the translation, what is named, and the texts that the model was given."""
    data = source.encode() if isinstance(source, str) else source
    fields = opening.fields_of(DocumentInfo(name, lang, "de", (), DocumentOptions(**options)))  # type: ignore[arg-type]
    texts = opening.texts(data, fields)["texts"]
    info = DocumentInfo(name, lang, "de", (), DocumentOptions(**options))  # type: ignore[arg-type]
    result = opening.finished(**finishing(data, info, translations(texts, STAND_INS[mode])))
    return result["content"].decode(), result["left"], texts


def film(*captions: str, length_s: int = 2) -> str:
    """Return captions as SubRip, one after the other."""
    return "\n".join(
        f"{i}\n00:{i:02d}:00,000 --> 00:{i:02d}:{length_s:02d},000\n{text}\n" for i, text in enumerate(captions)
    )  # fmt: skip


def close(*captions: str) -> str:
    """Return captions as SubRip, without a pause between them."""
    return "\n".join(
        f"{i + 1}\n00:00:{i:02d},000 --> 00:00:{i + 1:02d},000\n{text}\n" for i, text in enumerate(captions)
    )


def captions_of(text: str) -> list[str]:
    """Return the captions of SubRip with the letters of their source."""
    return [part.split("\n", 2)[2].strip("\n") for part in deciphered(text).strip("\n").split("\n\n")]


@pytest.mark.parametrize(
    ("captions", "lang", "texts"),
    [
        (["The old house", "The dog sleeps", "The cat sings"], "en", 3),  # labels
        (["the old house stands", "where the dog sleeps."], "en", 1),
        (["I went to", "London with Anna."], "en", 1),  # a name
        (["We met when", "I was there.", "We left."], "en", 2),
        (["POLICE", "NO ENTRY", "He said that", "he was here.", "He was."], "en", 4),  # signs
        (["WE WENT THERE", "IN THE MORNING.", "WE SAW HIM.", "HE LEFT."], "en", 3),  # all in capitals
        (["Wir haben gestern", "Hunde gesehen.", "Das war gut.", "Sie auch."], "de", 3),  # nouns of German
        (["Το παλιό σπίτι", "Ο σκύλος κοιμάται"], "el", 2),
        (["旧房子", "狗在睡觉", "猫在唱歌"], "zh", 3),  # no case, no full stops
        (["他说，", "狗在睡觉。", "猫在唱歌。"], "zh", 2),
        (["البيت القديم", "الكلب ينام"], "ar", 2),
        (["<i>The dog</i>", "sleeps here."], "en", 2),
        (["{\\an8}the dog", "sleeps here."], "en", 2),
        (["<i>the dog</i>", "<i>sleeps here.</i>"], "en", 1),
        (["[door opens]", "the dog sleeps"], "en", 2),
        (["♪ la la la", "the dog sleeps ♪", "and wakes"], "en", 2),
        (["JOHN: the dog", "sleeps here."], "en", 2),  # the label is apart
        (["- the dog", "- sleeps here."], "en", 2),
        (["The dog", "The dog sleeps"], "en", 2),  # a caption that grows
    ],
)
def test_sentences_end_where_the_voice_or_the_sentence_changes(captions: list[str], lang: str, texts: int) -> None:
    assert len(translated(close(*captions), lang=lang)[2]) == texts


def test_no_word_crosses_the_end_of_a_sentence_within_a_line() -> None:
    source = close("I see it. What is <i>the dog\ndoing</i> there? He sleeps in", "the house. Mr. Smith\nsaid no. OK")
    for mode in ("same", "reversed"):
        result, left, texts = translated(source, mode=mode)
        assert left == []
        assert texts == [
            "I see it.",
            "What is the dog doing there?",
            "He sleeps in the house.",
            "Mr. Smith said no.",
            "OK",
        ]
    first, second = captions_of(result)
    assert " ".join(first.split()) == "it. see I there? <i>doing dog the</i> is What house. the in sleeps"
    assert " ".join(second.split()) == "He no. said Smith Mr. OK"
    assert translated(source, mode="same")[0] == source


def test_a_number_is_no_sentence_of_a_caption() -> None:
    _, _, texts = translated(film("The dog sleeps. I see it. 7!"))
    assert texts == ["The dog sleeps.", "I see it. 7!"]


def test_the_dash_of_a_speaker_in_a_style_of_its_own_stays_before_the_words() -> None:
    source = (
        '<tt xmlns="http://www.w3.org/ns/ttml"><body><p>-A dog<br/><span style="s">-</span>The red cat.</p></body></tt>'
    )
    result, _, texts = translated(source, "a.ttml", "reversed")
    assert texts == ["A dog", "The red cat."]
    assert '<br/><span style="s">-</span>' in result


def test_a_line_does_not_begin_with_a_dash_that_no_speaker_has() -> None:
    result, _, _ = translated(film("You can work it\nout – as if I go."))
    assert not re.search(r"^[-–]", result.split("\n", 2)[2], re.MULTILINE)


@pytest.mark.parametrize("mode", ["letters", "reversed"])
def test_words_never_move_between_speakers(mode: str) -> None:
    source = (
        "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Anna>The dog sleeps\n\n00:02.000 --> 00:03.000\n<v Ben>the cat sings\n\n"
        "00:03.000 --> 00:04.000\n<v Ben>and <i>the man</i> runs <v Anna>yes he does\n\n"
        "00:04.000 --> 00:05.000 line:0\nup there\n\n00:05.000 --> 00:06.000\ndown here\n"
    )
    result, _, texts = translated(source, "a.vtt", mode)
    assert texts == ["The dog sleeps", "the cat sings and the man runs", "yes he does", "up there", "down here"]
    first, second, third, fourth, fifth = re.findall(r"-->[^\n]*\n([^\n]*)", deciphered(result))
    assert sorted(re.sub(r"<[^>]*>", " ", first).split()) == ["The", "dog", "sleeps"]
    assert "yes" in third.partition("nna>")[2]
    assert "man" in second + third.partition("nna>")[0]
    assert sorted(fourth.split()) == ["there", "up"]
    assert sorted(fifth.split()) == ["down", "here"]


def test_a_line_of_two_speakers_a_label_a_song_and_a_sound_keep_their_marks() -> None:
    source = close(
        "- Hello there. - Hi you.", "JOHN: The dog\nsleeps here.", "♪ la la the dog\nsings ♪", "[door opens] No."
    )
    result, left, texts = translated(source, mode="reversed")
    assert texts == [
        "Hello there.",
        "Hi you.",
        "JOHN",
        "The dog sleeps here.",
        "la la the dog sings",
        "door opens",
        "No.",
    ]
    assert captions_of(result) == [
        "- there. Hello - you. Hi", "JOHN: here.\nsleeps dog The", "♪ sings dog\nthe la la ♪", "[opens door] No.",
    ]  # fmt: skip
    assert left == []


@pytest.mark.parametrize("n_words", range(1, 9))
def test_no_caption_that_had_words_is_empty(n_words: int) -> None:
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    source = close(*(f"{word} and" for word in words[:-1]), "eight.")
    fields = opening.fields_of(info := DocumentInfo("a.srt", "en", "de"))
    (text,) = opening.texts(source.encode(), fields)["texts"]
    short = {text: Translation(" ".join(words[:n_words]), 0.0)}
    captions = captions_of(opening.finished(**finishing(source.encode(), info, short))["content"].decode())
    assert all(captions)
    assert list(dict.fromkeys(" ".join(captions).split())) == words[:n_words]


def test_captions_that_roll_up_repeat_the_translation() -> None:
    source = (
        "WEBVTT\n\n00:01.000 --> 00:04.000\nthe <00:01.500><c>big</c><00:02.000><c> dog</c>\n\n00:04.000 --> 00:04.010\n"
        "the big dog\n \n\n00:04.010 --> 00:06.000\nthe big dog\nruns <00:04.500><c>here</c>\n"
    )
    result, left, texts = translated(source, "a.vtt")
    assert texts == ["the big dog runs here"]
    assert left == []
    assert deciphered(re.sub(r"<c>|</c>", "", result)) == deciphered(re.sub(r"<c>|</c>", "", source))
    shown = re.sub(r"<[^>]*>", "", translated(source, "a.vtt", "reversed")[0]).split("\n\n")
    first, again, last = (block.split("\n")[1:] for block in shown[1:])
    assert first[0] == again[0] == last[0]
    assert first[0]
    assert last[1]


def test_text_after_an_empty_line_belongs_to_the_cue_of_subrip_only() -> None:
    result, left, texts = translated("1\n00:00:01,000 --> 00:00:02,000\n\nthe dog\n\nthe cat\n")
    assert texts == ["the dog", "the cat"]
    assert left == []
    result, left, texts = translated("WEBVTT\n\n00:01.000 --> 00:02.000\nthe dog\n\nthe cat\n", "a.vtt")
    assert texts == ["the dog"]
    assert result.endswith("\n\nthe cat\n")
    assert left == [["the cat", "line 6: stands outside the cues, as after an empty line, so no player shows it"]]


@pytest.mark.parametrize(
    ("times", "why"),
    [
        ("00:00:05,000 --> 00:00:04,000", "line 6: this cue ends before it begins; its times stay as they are"),
        ("00:00:05,000 --> ", "line 6: has no times that can be read; they stay as they are"),
        ("00:00:0x,000 --> 00:00:06,000", "line 6: has no times that can be read; they stay as they are"),
        ("0:0:5.5 -> 0:0:6", ""),
        ("00:00:05:000 --> 00:00:06:000", ""),
        ("-00:00:05,000 --> 00:00:06,000 X1:100", ""),
        ("00: 00: 05, 000 --> 00: 00: 06, 000", ""),
    ],
)
def test_a_bad_cue_is_named_and_a_film_is_not_refused(times: str, why: str) -> None:
    source = (
        f"1\n00:00:01,000 --> 00:00:02,000\nThe dog.\n\n2\n{times}\nThe cat.\n3\n00:00:07,000 --> 00:00:08,000\nEnd"
    )
    result, left, texts = translated(source)
    assert texts == ["The dog.", "The cat.", "End"]
    assert times in result
    assert deciphered(result) == source
    assert left == ([[times.strip(), why]] if why else [])


def test_what_has_no_cues_is_refused() -> None:
    for name, data in (
        ("a.srt", "words"),
        ("a.sbv", "words"),
        ("a.vtt", "words"),
        ("a.ass", "words"),
        ("a.ttml", "<a/>"),
    ):
        with pytest.raises(DataError, match=r"no times|WEBVTT|Events|must be tt"):
            translated(data, name)


def test_lines_have_at_most_so_many_columns_and_fast_captions_are_named() -> None:
    text = "If the friendly teacher does not read the old book, the small dog sleeps."
    result, left, _ = translated(film(text), line_length=42, reading_speed=40)
    assert captions_of(result) == ["If the friendly teacher does not read\nthe old book, the small dog sleeps."]
    assert left == []
    _, left, _ = translated(film(text), reading_speed=17)
    assert [why for _, why in left] == ["more than 17 characters per second: it may be too fast to read"]
    result, left, _ = translated(film(f"{text[:-1]} {text}"), line_length=42)
    assert max(map(len, captions_of(result)[0].split("\n"))) <= 42
    assert [why for _, why in left] == ["the caption has more than 2 lines"]
    assert captions_of(translated(film("The small dog\nsleeps."), line_length=42)[0]) == ["The small dog sleeps."]


def test_lines_are_balanced_and_break_at_a_pause() -> None:
    assert broken("one two three four", 2, None) == [8]
    assert broken("if he sleeps, we go out", 2, None) == [14]
    assert broken("well, one two three four", 2, None) == [10]
    assert broken("word", 3, None) == []
    assert broken("", 2, 10) == []
    assert width("狗a\u0301") == 3
    assert broken("这是一个很长的句子，需要分成两行。", 1, 20) == [10]
    assert 9 not in break_places("这是一个很长的句子，需要")
    assert 4 in break_places("这是一个很长的句子，需要")
    for limit in (5, 9, 17):
        text = "a bb ccc dddd eeeee ffff ggg hh i " * 20
        places = [0, *broken(text, 1, limit), len(text)]
        assert all(width(text[a:b].strip()) <= limit for a, b in itertools.pairwise(places))


def test_scripts_keep_all_but_the_text_of_dialogues() -> None:
    source = (
        f"[Script Info]\r\nTitle: The dog\r\n\r\n[Events]\r\n{LAYERS}\r\n"
        "Dialogue: 0,0:00:01.00,0:00:02.00,Top,,0,0,0,,{\\an8}The big {\\i1}dog{\\i0}, you see,\\Nsleeps\\hhere.\r\n"
        "Comment: 0,0:00:01.00,0:00:02.00,Top,,0,0,0,,The dog\r\nDialogue: 0,bad\r\n"
        "Dialogue: 0,0:00:02.00,0:00:03.00,Top,,0,0,0,,{\\p1}m 0 0 l 9 0{\\p0}The cat\r\n"
        "Dialogue: 0,0:00:03.00,0:00:04.00,Top,,0,0,0,,{\\k20}la {\\k30}dog {\\k10}sings\r\n[Fonts]\r\nfont: a\r\n"
    )
    result, left, texts = translated(source, "a.ass")
    assert texts == ["The big dog, you see, sleeps here.", "The cat", "la dog sings"]
    # A space stays unbroken, by the alignment.
    assert deciphered(result).replace("\\N", " ") == source.replace("\\N", " ")
    assert result.count("\\N") == 1
    assert left == [["Dialogue: 0,bad", "line 8: must have 10 fields, got 2"]]
    assert result.count("The dog") == 2
    assert "m 0 0 l 9 0" in result
    result = translated(f"[Events]\n{LAYERS}\nDialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,a dog, a cat", "a.ssa")[0]
    assert deciphered(result).endswith(",,a dog, a cat")


@pytest.mark.parametrize("name", ["a.srt", "a.vtt"])
def test_a_translation_without_words_is_named(name: str) -> None:
    source = (
        close("Why? I see", "it. 7?") if name == "a.srt" else "WEBVTT\n\n00:01.000 --> 00:02.000\nWhy? I see it. 7?\n"
    )
    info = DocumentInfo(name, "en", "de")
    made = {
        "Why?": Translation("?", 0.0),
        "I see it.": Translation("...", 0.0),
        "Why? I see it. 7?": Translation("?!", 0.0),
    }
    fields = finishing(source.encode(), info, made)
    result = opening.finished(**fields)
    assert result["content"].decode() == source
    assert "Why?" in {text for text, _ in result["left"]}


def test_a_translation_that_would_be_a_tag_is_named() -> None:
    source = f"[Events]\n{LAYERS}\nDialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,a dog\n".encode()
    info = DocumentInfo("a.ass", "en", "de")
    result = opening.finished(**finishing(source, info, {"a dog": Translation("ein {\\b1} Hund", 0.0)}))
    assert result["content"] == source
    assert [text for text, _ in result["left"]] == ["a dog"]


def test_timed_text_keeps_its_metadata_and_breaks() -> None:
    source = (
        '<?xml version="1.0"?>\n<tt:tt xmlns:tt="http://www.w3.org/ns/ttml" xmlns:ttm="http://www.w3.org/ns/ttml#metadata">'
        "<tt:head><ttm:title>The dog</ttm:title></tt:head><tt:body><tt:div>\n"
        '<tt:p begin="1s" end="00:00:02.5">\n  The big <tt:span style="i">dog</tt:span> &amp; the<tt:br/>\n  cat sleep</tt:p>\n'
        '<tt:p begin="75t" dur="1s"><ttm:desc>a note</ttm:desc>in the house.</tt:p><tt:p region="top">Up &lt;there&gt;</tt:p>'
        "</tt:div></tt:body></tt:tt>\n"
    )
    result, left, texts = translated(source, "a.ttml", "same")
    assert result == source
    assert left == []
    assert texts == ["The big dog & the cat sleep", "in the house.", "Up <there>"]
    result, _, _ = translated(source, "a.dfxp")
    assert "<ttm:title>The dog</ttm:title>" in result
    assert "<ttm:desc>a note</ttm:desc>" in result
    assert "&lt;" in result
    assert result.count("<tt:br/>") == 1
    assert '<tt:span style="i">дог</tt:span>' in result


DOG, CHIEN = "<p{} begin='1s' end='2s'>A dog.</p>", "<p{} begin='1s' end='2s'>Un chien.</p>"
EN, FR, DE = (f" xml:lang='{lang}'" for lang in ("en-GB", "fr", "de"))
SPANS = f"<p begin='1s' end='2s'><span{EN}>A dog.</span><br/><span{FR}>Un chien.</span></p>"


@pytest.mark.parametrize(
    ("root", "body"),
    [
        ("", f"<div{EN}>{DOG.format('')}</div><div{FR}>{CHIEN.format('')}</div>"),
        ("", DOG.format(EN) + CHIEN.format(FR)),
        ("", f"{DOG.format('')}<div{FR}>{CHIEN.format('')}</div>"),
        ("", SPANS),
        (FR, SPANS),
        ("", DOG.format(EN) + CHIEN.format(FR).replace("Un", f"<span{EN}>Un</span>")),
        (EN, DOG.format("") + CHIEN.format(FR)),
        (FR, DOG.format(EN) + CHIEN.format("")),
        (DE, DOG.format("") + CHIEN.format(FR)),  # that of the root is wrong
    ],
)
def test_timed_text_in_another_language_stays_and_is_named(root: str, body: str) -> None:
    source = f"<tt{root}><body>{body}</body></tt>"
    result, left, texts = translated(source, "a.ttml")
    assert texts == ["A dog."]
    assert result == source.replace("A dog.", "А дог.")
    assert left == [["Un chien.", "line 1: its source is in fr, but this model translates from en"]]


@pytest.mark.parametrize(
    ("root", "body"),
    [
        (DE, DOG.format("") * 2),
        ("", f"<div{FR}>{DOG.format('') * 2}</div>"),
        (EN, DOG.format(" xml:lang='en-US'") + DOG.format(" xml:lang='eng'")),
        (
            "",
            DOG.format("") + DOG.format(" xml:lang='und'") + DOG.format(" xml:lang='zxx'") + DOG.format(" xml:lang=''"),
        ),
    ],
)
def test_one_language_of_timed_text_does_not_decide(root: str, body: str) -> None:
    source = f"<tt{root}><body>{body}</body></tt>"
    result, left, texts = translated(source, "a.ttml")
    assert texts == ["A dog."]
    assert result == source.replace("A dog.", "А дог.")
    assert not left


@pytest.mark.parametrize("reading", ['tts:ruby="text"', 'style="b"', 'style="a c"'])
def test_the_reading_of_a_word_in_timed_text_stays_and_is_named(reading: str) -> None:
    source = (
        '<tt xmlns="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling"><head><styling>'
        '<style xml:id="a" tts:color="red"/><style xml:id="b" tts:ruby="textContainer"/><style xml:id="c" style="b"/>'
        '</styling></head><body><div><p begin="1s" end="2s">The <span tts:ruby="container"><span tts:ruby="base">dog'
        f"</span><span {reading}>hound</span></span> sleeps.</p></div></body></tt>"
    )
    result, left, texts = translated(source, "a.ttml", "reversed")
    assert texts == ["The dog sleeps."]
    assert f'<span tts:ruby="base">дог</span><span {reading}>hound</span></span>' in result
    assert [text for text, _ in left] == ["hound"]


def test_a_tag_of_webvtt_without_an_end_stays_and_is_named() -> None:
    source = "WEBVTT\n\n00:01.000 --> 00:02.000\nThe dog <b and all behind\nit\n\n00:13.000 --> 00:14.000\na < b\n"
    result, left, texts = translated(source, "a.vtt")
    assert texts == ["The dog", "a < b"]
    assert "Тхе дог <b and all behind\nit\n" in result
    assert [text for text, _ in left] == ["<b and all behind\nit"]


def test_captions_of_youtube_have_no_numbers() -> None:
    source = "0:00:01.000,0:00:02.000\r\nthe dog[br]sleeps in\r\n\r\n0:00:02.000,0:00:03.000\r\nthe house.\r\n"
    result, left, texts = translated(source, "a.sbv")
    assert texts == ["the dog sleeps in the house."]
    assert deciphered(result) == source
    assert left == []


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends_of_all_kinds(encoding: str, end: str) -> None:
    source = close("Señor Müller går på café på Straße.", "Él está aquí, über allem, på gården.").replace("\n", end)
    data = source.encode(encoding)
    info = DocumentInfo("a.srt", "en", "de")
    texts = opening.texts(data, opening.fields_of(info))["texts"]
    assert texts == ["Señor Müller går på café på Straße.", "Él está aquí, über allem, på gården."]
    result = opening.finished(**finishing(data, info, translations(texts, STAND_INS["same"])))
    assert result["content"] == (source.encode() if encoding == "cp1252" else data)


def test_entities_regions_and_notes_of_webvtt() -> None:
    source = (
        "WEBVTT - The dog\nKind: captions\n\nREGION\nid:a\n\nSTYLE\n::cue { color: red }\n\nNOTE\nthe dog\n\nthe id\n"
        "00:01.000 --> 00:02.000 region:a\nR&amp;D &lt;3 &amp the <lang de>dog</lang>\n"
    )
    result, left, texts = translated(source, "a.vtt")
    assert texts == ["R&D <3 & the dog"]
    assert left == []
    assert deciphered(result) == source.replace("&amp ", "&amp; ")
    source = "WEBVTT\n\n00:01.000 --> 00:02.000\n<ruby>dog<rt>inu</rt></ruby> sleeps\n"
    assert translated(source, "a.vtt", "same")[0] == source
    assert translated(source, "a.vtt")[1] == [["inu", "line 3: the reading of a word stays as it is"]]


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("a.vtt", "Yes&nbsp;&nbsp;&nbsp;no dog", "Юес&nbsp;&nbsp;\u00a0но дог"),
        ("a.vtt", "The dog.&nbsp; The cat &nbsp;sings", "Тхе дог.&nbsp; Тхе цат &nbsp;сингс"),
        ("a.srt", "Yes\u00a0\u00a0no dog", "Юес\u00a0\u00a0но дог"),
        ("a.ass", r"Yes\h\h\hno dog", r"Юес\h\h\hно дог"),
        ("a.srt", "# The dog\u00a0! #", "# Тхе дог\u00a0! #"),  # the marks of a song
    ],
)
def test_spaces_that_a_player_shows_keep_their_number(name: str, source: str, expected: str) -> None:
    films = {
        "a.vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\n{}\n",
        "a.srt": film("{}"),
        "a.ass": "[Script Info]\n\n[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00,0:00:02.00,{}\n",
    }
    assert translated(films[name].format(source), name)[0] == films[name].format(expected)


def test_the_parts_of_a_line() -> None:
    assert turns_in("[sighs] No. (laughs)", (".",)) == [8, 12]
    assert turns_in("10 - 12", (".",)) == []
    assert turns_in("- Yes. - No.", (".",)) == [7]
    assert label_end("DR. WHO 2: hm") == 11
    assert label_end("at 10:30") == 0
    assert label_end("张三：好") == 3
    assert label_end("He said: no") == 0
    assert label_end("JOHN:Go") == 5
    tokens = [Token("<i>", "open", name="i"), Token("[a b]", text="[a b]"), Token("</i>", "close", name="i")]
    assert strip(tokens)[0::2] == ("<i>[", "]</i>")
    assert text_of(strip(tokens)[1]) == "a b"
    assert [text_of(run) for run in split([Token("ab cd", text="ab cd")], [3])] == ["ab ", "cd"]


def test_a_line_that_every_caption_repeats_is_a_copy_of_the_first() -> None:
    text = '<tt xmlns="http://www.w3.org/ns/ttml"><body><div>' + "<p>the dog</p>" * 20 + "</div></body></tt>"
    film = read_paragraphs(text, DocumentInfo("a.ttml"))
    pieces = [part for part in sentences_of(film, "en").skeleton if isinstance(part, Piece)]
    assert len(pieces) == 20
    assert all(piece.copy_of is pieces[0] for piece in pieces[1:])


def test_times_with_odd_numbers_are_read_or_left() -> None:
    times = ["00:00:01,000 --> 00:00:02,-1", "00:00:01,-000 --> -0:0:1,-5", "-1:-2 --> -3,-4", "1.-2 --> 3.-4"]
    source = "\n".join(f"{i}\n{line}\nthe dog\n" for i, line in enumerate(times, 1))
    assert deciphered(translated(source, "a.srt")[0]) == source
    long = "9" * 5000
    for begin in (f"{long}:00:00", f"00:00:00:{long}", f"{long}h", f"0.{long}s"):
        rate = f' ttp:frameRate="{long}"'
        source = f'<tt xmlns:ttp="a"{rate}><body><p begin="{begin}" end="2s">the dog</p></body></tt>'
        assert deciphered(translated(source, "a.ttml")[0]) == source


def test_a_closing_tag_with_spaces_is_a_tag() -> None:
    content, left, _ = translated(film("This <i>dog runs</ i> home.", "A < b > here."), mode="reversed")
    assert captions_of(content) == ["home. <i>runs dog</ i> This", "here. > b < A"]
    assert left == []


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("the {\\c&HFF&}dog{\\r} runs", "runs {\\c&HFF&}dog{\\r} the"),
        ("the {\\b1\\1c&HFF&}dog runs{\\b0\\1c}", "{\\b1\\1c&HFF&}runs dog{\\b0\\1c} the"),
        ("the {\\c&HFF&}dog{\\c&HFFFF&} runs", "runs {\\c&HFF&}dog{\\c&HFFFF&} the"),
        ("{\\c&HFF&}the {\\c&HFFFF&}dog", "{\\c&HFFFF&}dog{\\1c} {\\c&HFF&}the{\\1c}"),
        ("the {\\i1}dog runs", "{\\i1}runs dog{\\i0} the"),
        ("{\\i1}the dog", "{\\i1}dog the"),
        ("the {\\i1}dog{\\b1} runs{\\r} home", "home {\\i1}{\\b1}runs{\\b0} dog{\\r} the"),
        ("{\\an8}the {\\fnComic Sans}dog{\\fn}", "{\\an8}{\\fnComic Sans}dog{\\fn} the"),
        ("the {\\rSign}dog", "{\\rSign}dog the"),
    ],
)
def test_a_style_of_a_caption_stays_with_its_words(caption: str, expected: str) -> None:
    source = f"[Events]\n{LAYERS}\nDialogue: 0,0:00:01.00,0:00:02.00,A,,0,0,0,,{caption}\n"
    result, left, _ = translated(source, "a.ass", "reversed")
    assert deciphered(result).partition("0,0,0,,")[2] == expected + "\n"
    assert left == []
    assert by_style(source.encode(), ".ass") == by_style(deciphered(result).encode(), ".ass")


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("The <i>dog runs.", "<i>runs. dog</i> The"),
        ("The {\\i1}dog{\\i0} runs.", "runs. {\\i1}dog{\\i0} The"),
        ("<i>The dog runs.", "<i>runs. dog The"),
        ("The <b><i>dog</b> runs.", "runs. <b><i>dog</b> The"),
    ],
)
def test_an_element_without_an_end_ends_with_its_caption(caption: str, expected: str) -> None:
    assert captions_of(translated(film(caption), mode="reversed")[0]) == [expected]
    cue = f"WEBVTT\n\n00:01.000 --> 00:02.000\n{caption}\n"
    assert deciphered(translated(cue, "a.vtt", "reversed")[0]).strip().split("\n")[-1] == expected


@pytest.mark.parametrize(
    ("fields", "event", "why"),
    [
        ("Start, End, Style, Style, Text", "0:00:01.00,0:00:02.00,A,B,The dog, it sleeps", "names 'Style' twice"),
        ("Start, End, Text, Text", "0:00:01.00,0:00:02.00,x,The dog", "names 'Text' twice"),
        ("Start, Start, Text", "0:00:01.00,0:00:02.00,The dog", "names 'Start' twice"),
        ("Start, End, , , Text", "0:00:01.00,0:00:02.00,a,b,The dog", "names '' twice"),
        ("Start, End, Style", "0:00:01.00,0:00:02.00,The dog", "names no Text"),
    ],
)
@pytest.mark.parametrize("name", ["a.ass", "a.ssa"])
def test_an_event_whose_fields_are_not_plain_keeps_its_bytes(name: str, fields: str, event: str, why: str) -> None:
    source = f"[Events]\nFormat: {fields}\nDialogue: {event}\n"
    result, left, texts = translated(source, name)
    assert (result, texts) == (source, [])
    assert left == [[f"Dialogue: {event}", f"line 3: the line Format {why}"]]
