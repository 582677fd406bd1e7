"""Translation memories: units, languages, inline tags, and documents made to hurt."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path

import pytest

from dragoman.config import OneFile
from dragoman.data.texts import read_one
from dragoman.data.tmx import read_tmx, tmx_languages
from dragoman.errors import DataError

EN_DE = ("en", "de")


def unit(**segments: str) -> str:
    return (
        "<tu>"
        + "".join(f'<tuv xml:lang="{k.replace("_", "-")}"><seg>{v}</seg></tuv>' for k, v in segments.items())
        + "</tu>"
    )


def memory(folder: Path, *units: str, head: str = "", srclang: str = "en", name: str = "a.tmx") -> Path:
    path = folder / name
    text = f'<?xml version="1.0" encoding="utf-8"?>{head}<tmx version="1.4"><header srclang="{srclang}"/><body>'
    path.write_text(text + "\n".join(units) + "</body></tmx>\n", encoding="utf-8")
    return path


def test_units_become_pairs_and_what_is_left_out_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = memory(
        tmp_path,
        unit(
            en="A <bpt i='1'>&lt;b&gt;</bpt>big<ept i='1'>&lt;/b&gt;</ept> dog &amp; co.",
            de="Ein <hi>großer</hi> Hund.",
        ),
        unit(en="only English"),
        unit(en="two\n      lines", de="zwei Zeilen"),
        unit(en_US="colour?", de_AT="Farbe?", fr="couleur?"),
    )
    with caplog.at_level(logging.INFO, "dragoman"):
        pairs = list(read_tmx(path, EN_DE))
    assert pairs == [("A big dog & co.", "Ein großer Hund."), ("two lines", "zwei Zeilen"), ("colour?", "Farbe?")]
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: 1 of 4 units left out: they lack en or de", f"{path}: 3 inline tags left out of the text",
    ]  # fmt: skip
    packed = tmp_path / "b.tmx.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_tmx(packed, EN_DE)) == pairs


def test_further_texts_of_a_language_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    two = '<tu><tuv xml:lang="en"><seg>bank</seg></tuv><tuv xml:lang="de"><seg>Bank</seg></tuv>'
    two += '<tuv xml:lang="de"><seg>Ufer</seg></tuv><tuv xml:lang="fr"><seg>banque</seg></tuv></tu>'
    same = unit(en_US="lift", en_GB="lift", de="Aufzug")
    regions = unit(en_US="color", en_GB="colour", de_DE="Tüte", de_AT="Sackerl")
    path = memory(tmp_path, two, same, regions)
    with caplog.at_level(logging.INFO, "dragoman"):
        assert list(read_tmx(path, EN_DE)) == [("bank", "Bank"), ("lift", "Aufzug"), ("color", "Tüte")]
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: left out further texts of a unit in en or de: 3"
    ]


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ("First line<ph>&lt;mq:ch val='\n'/&gt;</ph>second", "First line second"),
        ("First line <ph/>second<ph/><ph/>third.<ph/>", "First line second third."),
        ("a <bpt i='1'>b</bpt>bo<sub>x</sub>ld<ept i='1'>/b</ept>er (<ph/>)", "a bolder ()"),
        ("a<ph>x <sub>y</sub></ph>b", "a b"),
    ],
)
def test_a_placeholder_between_words_keeps_them_apart(tmp_path: Path, segment: str, text: str) -> None:
    """A line break that memoQ wrote joined two words to one."""
    assert list(read_tmx(memory(tmp_path, unit(en=segment, zh="一<ph/>二")), ("en", "zh"))) == [(text, "一二")]


def test_regions(tmp_path: Path) -> None:
    path = memory(tmp_path, unit(en_US="color", en_GB="colour", de="Farbe"))
    assert list(read_tmx(path, ("en", "de-AT"))) == [("color", "Farbe")]
    assert list(read_tmx(path, ("en-gb", "de"))) == [("colour", "Farbe")] == list(read_tmx(path, ("en_GB", "de")))
    for first, second in (("pt", "pt_BR"), ("pt_BR", "pt")):
        path_of_two = memory(tmp_path, unit(en="bus", **{first: first, second: second}), name="two.tmx")
        for wanted in (first, second):
            assert list(read_tmx(path_of_two, ("en", wanted))) == [("bus", wanted)]
    with pytest.raises(DataError, match="no unit has both en-AU and de; there is: de, en"):
        list(read_tmx(path, ("en-AU", "de")))


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-8-sig"])
def test_a_memory_in_another_encoding_with_its_mark_is_read(tmp_path: Path, codec: str) -> None:
    """One that declares UTF-16, as its XML should, was refused."""
    path = memory(tmp_path, unit(en="a dog", de="ein Hündchen"))
    text = path.read_text(encoding="utf-8").split("?>", 1)[-1]
    name = codec.removesuffix("-sig")[:6].upper()
    text = f'<?xml version="1.0" encoding="{name}"?>{text}'
    mark = "" if codec.endswith("sig") else "\ufeff"
    path.write_bytes((mark + text).encode(codec))
    assert list(read_tmx(path, EN_DE)) == [("a dog", "ein Hündchen")]


def test_two_languages_need_not_be_named(tmp_path: Path) -> None:
    assert tmx_languages(memory(tmp_path, unit(de="x", en_US="y"), srclang="EN-US")) == ("en-US", "de")
    assert tmx_languages(memory(tmp_path, unit(de="x", en_US="y"), srclang="*all*")) == ("de", "en-US")
    with pytest.raises(DataError, match=r"3 languages \(de, en, fr\); choose source and target"):
        tmx_languages(memory(tmp_path, unit(de="x", en="y", fr="z")))
    assert tmx_languages(memory(tmp_path, "<tu><tuv><seg>?</seg></tuv></tu>", unit(de="x", fr="z"))) == ("de", "fr")
    with pytest.raises(DataError, match=r"one language alone \(en\); a pair needs two"):
        tmx_languages(memory(tmp_path, unit(en="x")))
    with pytest.raises(DataError, match=r"one language alone \(en-US, en-GB\); choose .* --columns en-US,en-GB$"):
        tmx_languages(memory(tmp_path, unit(en_US="color", en_GB="colour")))
    with pytest.raises(DataError, match="0 languages; choose"):
        tmx_languages(memory(tmp_path))


def test_every_region_is_read_where_no_languages_are_chosen(tmp_path: Path) -> None:
    """The first unit of a memory chose the regions, and all units of others were left out."""
    path = memory(
        tmp_path,
        unit(en_US="color", de_DE="Farbe"),
        unit(en_GB="colour", de_AT="Farbe?"),
        unit(de="Hund", en="dog"),
        unit(en_US="only English"),
    )
    pairs = [("color", "Farbe"), ("colour", "Farbe?"), ("dog", "Hund")]
    assert list(read_one(OneFile(file=path))) == pairs
    assert list(read_one(OneFile(file=path, columns=("en-US", "de-DE")))) == [pairs[0], pairs[2]]
    path = memory(tmp_path, unit(en="dog", zh_TW="狗"), unit(en="cat", zh_HK="貓"), unit(en="bird", zh_CN="鸟"))
    assert list(read_one(OneFile(file=path))) == [("dog", "狗"), ("cat", "貓")]  # another script is another text


BOMB = "<!DOCTYPE tmx [" + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10 if i else "ha"}">' for i in range(10)) + "]>"


@pytest.mark.parametrize(
    ("head", "segment", "message"),
    [
        (BOMB, "&a9;", "it declares a document type of its own"),
        ('<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]>', "&x;", "it declares a document type of its own"),
        ('<!DOCTYPE tmx SYSTEM "http://127.0.0.1:9/tmx14.dtd">', "&x;", "&x; is not declared"),
        ("", "&x;", "not well-formed XML (undefined entity)"),
        ("", "</seg>", "not well-formed XML (mismatched tag)"),
        ("", "x" * (2**20 + 1), "a segment is longer than 1,048,576 characters"),
    ],
)
def test_documents_made_to_hurt(tmp_path: Path, head: str, segment: str, message: str) -> None:
    path = memory(tmp_path, unit(en=segment, de="x"), head=head)
    with pytest.raises(DataError) as refusal:
        list(read_tmx(path, EN_DE))
    assert str(refusal.value).startswith(f"{path}:")
    assert message in str(refusal.value)


def test_a_document_type_elsewhere_is_never_fetched(tmp_path: Path) -> None:
    path = memory(tmp_path, unit(en="a", de="b"), head='<!DOCTYPE tmx SYSTEM "http://127.0.0.1:9/tmx14.dtd">')
    assert list(read_tmx(path, EN_DE)) == [("a", "b")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not well-formed XML (no element found)"),
        (b"a\tb\n", "not well-formed XML (syntax error)"),
        (b"<html/>", "it begins with <html>, not with <tmx>"),
        (b"<tmx><body><tu>", "not well-formed XML (no element found)"),
        (b"<tmx>\xff</tmx>", "not well-formed XML (not well-formed (invalid token))"),
        (b"PK\x03\x04abc", "a zip archive"),
        (b"<?xml version='1.0' encoding='unicode_escape'?><tmx/>", "encoding 'unicode_escape', which is not read here"),
    ],
)
def test_what_is_no_memory_is_refused(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "a.tmx"
    path.write_bytes(text)
    with pytest.raises(DataError) as refusal:
        list(read_tmx(path, EN_DE))
    assert message in str(refusal.value)
