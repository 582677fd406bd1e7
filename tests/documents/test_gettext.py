"""Messages of gettext: placeholders, layout, markup, mnemonics, plural forms and headers arrive, or are named."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import polib
import pytest

from benchmarks.real_documents.stand_ins import STAND_INS, letters, translations
from dragoman.documents import gettext
from dragoman.documents.document import DocumentInfo
from dragoman.documents.opening import fields_of, finished, texts
from dragoman.errors import DataError

HEADER = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'


def translated(
    data: bytes, stand_in: str = "letters", name: str = "a.po", language: str | None = "de"
) -> tuple[bytes, list[list[str]]]:
    """Return a catalogue with its messages translated by a stand-in, and what was left."""
    info = fields_of(DocumentInfo(name, "en", language))
    lines = translations(texts(data, info)["texts"], STAND_INS[stand_in]).items()
    result = finished(data, info, [[text, line.text, line.alignment] for text, line in lines], [])
    return result["content"], result["left"]


def message(msgid: str, flag: str = "", stand_in: str = "letters") -> str:
    """Return the translation of one message as it stands in the file; "" if it stays untranslated."""
    flags = f"#, {flag}\n" if flag else ""
    content, _ = translated(f'{HEADER}{flags}msgid "{msgid}"\nmsgstr ""\n'.encode(), stand_in)
    strings = content.decode().partition(HEADER)[2].rpartition("msgstr ")[2].strip()
    return "".join(line.strip()[1:-1] for line in strings.split("\n"))


@pytest.mark.parametrize(
    ("flag", "msgid", "reversed_words"),
    [
        ("c-format", "%s of %d", "%2$d оф %1$s"),
        ("c-format", "move %s to %s", "%2$s то %1$s мове"),
        ("c-format", "%-5s is 50%% of %'lu", "%2$'lu оф 50%% ис %1$-5s"),
        ("c-format", "%*d of %s", "%3$s оф %2$*1$d"),
        ("c-format", "%2$s of %1$s", "%1$s оф %2$s"),
        ("c-format", "%<PRIu64> of them", "тхем оф %<PRIu64>"),
        ("objc-format", "%@ of %d", "%2$d оф %1$@"),
        ("python-format", "%(a)s of %(b)d", "%(b)d оф %(a)s"),
        ("python-format", "%s of %d", ""),  # they have no numbers, so their order must stay
        ("python-brace-format", "{} of {:>3} in {{x}}", "{{x}} ин {1:>3} оф {0}"),
        ("tcl-format", "%*i of %s", ""),  # a width cannot have a number in Tcl
        ("go-format", "%s of %d", "%[2]d оф %[1]s"),
        ("qt-format", "%1 of %L2", "%L2 оф %1"),
        ("qt-plural-format", "dogs %n", "%n догс"),
        ("kde-format", "%1 of %2", "%2 оф %1"),
        ("perl-brace-format", "{a} of {b}", "{b} оф {a}"),
        ("sh-format", "$a of ${b}", "${b} оф $a"),
        ("ruby-format", "%{a} of %<b>d", "%<b>d оф %{a}"),
        ("java-format", "it''s {0}", "{0} ит''с"),
        ("java-format", "use '{'dog'}' of {0}", "{0} оф '{'dog'}' усе"),
        ("object-pascal-format", "%0:d of %1:s", "%1:s оф %0:d"),
        ("perl-format", "%vd of it", "ит оф %vd"),
        ("csharp-format", "{0} of {1:d}", "{1:d} оф {0}"),
        ("scheme-format", "~a is", "ис ~a"),
        ("lisp-format", "no ~10,2f is ~[a~;b~]", ""),  # its words belong to the places of the placeholders
        ("lisp-format", "dog ~:D", "~:D дог"),
        ("gcc-internal-format", "%<asm%> of %qs and %<%s%>", "%<%2$s%> анд %1$qs оф %<asm%>"),
        ("gcc-internal-format", "it%'s %<of%>", "%<of%> ит%'с"),
        ("boost-format", "%1% of %2%", "%2% оф %1%"),
        ("no-c-format", "100% of dogs", "догс оф 100%"),
        ("", "%1 and %s of @NAME@", "@NAME@ оф %s анд %1"),
        ("", "say :count of 10:30", "10:30 оф :count саю"),
        ("c-format", "%*d dogs weigh %*.2f kg", "кг %4$*3$.2f шеигх догс %2$*1$d"),  # its stars are no emphasis
        ("c-format", "*%d* dogs and *cats*", "*цатс* анд догс *%d*"),
        ("java-printf-format", "%,d dogs see %(d", "%2$(d сее догс %1$,d"),
        ("c-format", "eats %Zd of %zd", "%2$zd оф %1$Zd еатс"),
        ("c-format", "%<PRIu64> dogs saw %d", "%2$d саш догс %1$<PRIu64>"),
    ],
)  # fmt: skip
def test_the_flag_says_what_a_placeholder_is_and_another_order_gets_numbers(
    flag: str, msgid: str, reversed_words: str
) -> None:
    assert message(msgid, flag, "same") == msgid
    assert message(msgid, flag, "reversed") == reversed_words


def test_an_apostrophe_hides_no_placeholder_of_java() -> None:
    """It begins a quote, in which nothing is a placeholder; msgfmt reads messages so."""
    assert message("{0} of {1} isn't it", "java-format", "reversed") == "ит исн''т {1} оф {0}"
    assert message("it isn't", "java-format", "reversed") == "исн'т ит"  # a message without values is used as it is
    texts = {"it's {0}": "an apostrophe that is not doubled hides a placeholder"}
    texts["{0,choice,0#no dog|1<{0} dogs} here"] = "a message of ICU that could not be followed"
    for text, why in texts.items():
        content, left = translated(f'{HEADER}#, java-format\nmsgid "{text}"\nmsgstr ""\n'.encode())
        assert content.endswith(b'msgstr ""\n')
        assert left == [[text, why]]


@pytest.mark.parametrize(
    ("msgid", "expected"),
    [
        ("  -a, --all     show dogs\\n  -b            cats\\n", "  -a, --all     схош догс\\n  -b            цатс\\n"),
        (
            "  -d, --dog=<name>  see dogs\\n  -c, --cat-or-bird see <name>\\n",
            "  -d, --dog=<name>  сее догс\\n  -c, --cat-or-bird сее <name>\\n",
        ),
        ("--dog sees cats", "--дог сеес цатс"),
        ("A dog %s here (%d%s).", "А дог %s хере (%d%s)."),
        ("&Show the dog...\\tCtrl+Shift+S", "&Схош тхе дог...\\tCtrl+Shift+S"),
        ("A {#DOG}.%n%nA cat", "А {#DOG}.%n%nА цат"),
        ("a dog (%dx%d) or %dpx and 5% discount", "а дог (%dx%d) ор %dpx анд 5% дисцоунт"),
        ("Name:\\tthe dog", "Наме:\\tтхе дог"),
        ("One ends.  Two ends.", "Оне ендс.  Тшо ендс."),
        ("\\n\\nA dog\\n", "\\n\\nА дог\\n"),
        ("- a dog\\n- a cat", "- а дог\\n- а цат"),
        ("\\033[1mdog\\033[0m \\x01[2m\\a", "\\033[1mдог\\033[0m \\x01[2m\\a"),
        ("say \\\"dog\\\" \\\\ here", "сау \\\"дог\\\" \\\\ хере"),
        ("<b>A dog</b> <a href='%s'>link</a><br/>", "<b>А дог</b> <a href='%s'>линк</a><br/>"),
        ("a ``git add`` and |dog| of :ref:`the-dog`", "а ``git add`` анд |dog| оф :ref:`the-dog`"),
        (":doc:`the dog <a/b>` and `a cat`_", ":doc:`тхе дог <a/b>` анд `а цат <a cat_>`_"),
        ("{n, plural, one {# dog} other {# dogs}}", "{n, plural, one {# дог} other {# догс}}"),
        ("run C<^.fi$> of L<the dog|dog(1)> as I<cats>", "рун C<^.fi$> оф L<тхе дог|dog(1)> ас I<цатс>"),
        ("run C<< a->b >> or B<< the dog >>", "рун C<< a->b >> ор B<< тхе дог >>"),
        ("I<the C<x> dog> of L<a|b>", "I<тхе C<x> дог> оф L<а|b>"),
        ("a dog\\\\n\\\\nIt", "а дог\\\\n\\\\nИт"),
        ("_A man", "_А ман"),
        ("Open _Read-Only", "Опен _Реад-Онлю"),
        ("vitamin C<b>dog</b>", "витамин Ц<b>дог</b>"),
        ("[url=https://a.org/x]A dog[/url] [img]res://dog.png[/img] [b]is[/b]",
         "[url=https://a.org/x]А дог[/url] [img]res://dog.png[/img] [b]ис[/b]"),
        ("[b] or[br][dog=cat] of a[i]", "[б] ор[br][дог=цат] оф а[и]"),  # in brackets, but without an end
    ],
)  # fmt: skip
def test_layout_escapes_and_markup_stay(msgid: str, expected: str) -> None:
    assert message(msgid) == expected.replace("сау", "саю")


def test_a_sentence_that_is_wrapped_is_translated_whole_and_wrapped_again() -> None:
    source = 'msgid ""\n"The dog that you see here will not\\n"\n"sleep until the cat sings.\\n"\nmsgstr ""\n'
    content, _ = translated((HEADER + source).encode(), "reversed")
    lines = polib.pofile(content.decode())[0].msgstr.split("\n")
    assert " ".join(lines).split() == [
        *("сингс.", "цат", "тхе", "унтил", "слееп", "нот", "шилл", "хере", "сее", "юоу", "тхат", "дог", "Тхе")
    ]
    assert len(lines) == 3
    assert max(map(len, lines)) <= len("The dog that you see here will not")


@pytest.mark.parametrize(
    "indents",
    [
        ("        ", "        ", "        ", "\\t"),
        ("\\t", "        ", "  \\t", "        "),
        ("", "\\t", "        ", "\\t"),
    ],
)
def test_lines_indented_by_spaces_and_tabs_lose_no_words(indents: tuple[str, ...]) -> None:
    """Before, all units behind such lines were shifted by the difference of the indents."""
    lines = (
        "Read the list of the dogs and of the cats in it and",
        "give names to all the people who read them and then",
        "show the list of the birds of the house, in the way",
        "to the people who read them",
    )
    wrapped = "".join(f"{indent}{line}\\n" for indent, line in zip(indents, lines, strict=True))
    source = f"{wrapped}  -v    print the version number\\n\\nUsage: the program %s [options]\\n"
    content, _ = translated(f'{HEADER}#, c-format\nmsgid "{source}"\nmsgstr ""\n'.encode(), "same")
    (entry,) = polib.pofile(content.decode())
    assert entry.msgstr.expandtabs(8) == entry.msgid.expandtabs(8)


def test_a_line_does_not_end_within_a_tag() -> None:
    source = 'msgid ""\n"<a href=\\"dog:\\">Show</a> the dog and the big tree of the\\n"\n"cats there."\nmsgstr ""\n'
    content, _ = translated((HEADER + source).encode(), "reversed")
    text = polib.pofile(content.decode())[0].msgstr
    assert text.count("\n") == 1
    assert '<a href="dog:">Схош</a>' in text


@pytest.mark.parametrize(
    ("msgid", "translation", "expected"),
    [
        ("_File", "Datei", "_Datei"), ("Save _As", "Sichern als", "Sichern _als"), ("E_xit", "Beenden", "B_eenden"),
        ("&File...", "文件…", "文件(&F)…"), ("Save ~As", "另存为", "另存为(~A)"),
        ("&16 dogs", "16 狗", "&16 狗"), ("&File\\tCtrl+F", "文件", "文件(&F)\tCtrl+F"),
    ],
)  # fmt: skip
def test_a_mnemonic_stands_at_a_letter_of_the_translation(msgid: str, translation: str, expected: str) -> None:
    source = f'{HEADER}msgid "{msgid}"\nmsgstr ""\n\nmsgid "_Open"\nmsgstr "_Auf"\n'.encode()
    info = fields_of(DocumentInfo("a.po", "en", "de" if translation.isascii() else "zh"))
    (text,) = texts(source, info)["texts"]
    assert not set("_&~") & set(text)
    content = finished(source, info, [[text, translation, None]], [])["content"]
    assert polib.pofile(content.decode())[0].msgstr == expected


def test_a_template_becomes_a_catalogue_of_the_target_language(tmp_path: Path) -> None:
    source = (
        'msgid ""\nmsgstr ""\n"Language: \\n"\n"Content-Type: text/plain; charset=CHARSET\\n"\n'
        '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n\n'
        '#, c-format\nmsgid "one dog"\nmsgid_plural "%d dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    )
    forms = {"ru": ["%d догс"] * 3, "ja": ["%d догс"], "fr": ["%d догс"] * 2, "de": ["оне дог", "%d догс"]}
    for language, expected in forms.items():
        content, _ = translated(source.encode(), name="a.pot", language=language)
        catalogue = polib.pofile(content.decode())
        assert catalogue.metadata["Language"] == language
        assert [*catalogue[0].msgstr_plural.values()] == expected
        (tmp_path / "a.po").write_bytes(content)
        if shutil.which("msgfmt") is None:
            pytest.skip("msgfmt of GNU gettext is not installed: it judges the catalogue")
        command = ["msgfmt", "-c", "-o", str(tmp_path / "a.mo"), str(tmp_path / "a.po")]
        assert subprocess.run(command, check=False, capture_output=True).returncode == 0


def in_language(declared: str) -> bytes:
    """Return a catalogue whose header declares a language."""
    header = f'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n"Language: {declared}\\n"\n\n'
    return f'{header}msgid "a dog"\nmsgstr ""\n'.encode()


@pytest.mark.parametrize(
    ("declared", "language"),
    [
        ("fr", "de"),
        ("pt_BR", "de"),
        ("fr_CA.UTF-8", "de"),
        ("oc", "de"),
        ("sr@latin", "sr"),
        ("zh_TW", "zh"),
        ("zh", "zh_TW"),
    ],
)
def test_a_catalogue_of_another_language_is_refused(declared: str, language: str) -> None:
    """Its empty messages got a translation in the language of the model."""
    why = f"a.po: its header says Language {declared}, but this model translates to {language}; leave it out, or mend"
    with pytest.raises(DataError, match=re.escape(why)):
        translated(in_language(declared), language=language)


@pytest.mark.parametrize(
    ("declared", "name", "language"),
    [
        ("de", "a.po", "de"), ("de_AT", "a.po", "de"), ("sr@latin", "a.po", "sr_RS@latin"), ("nb", "a.po", "no"), ("zh_HK", "a.po", "zh_TW"),
        ("", "a.po", "de"), ("LANGUAGE", "a.po", "de"), ("French", "a.po", "de"), ("und", "a.po", "de"), ("x" * 200, "a.po", "de"),
        ("en", "a.po", "de"), ("en_GB", "a.po", "de"), ("zxx", "a.po", "de"), ("mis", "a.po", "de"), ("qaa", "a.po", "de"),
        ("fr", "a.pot", "de"), ("fr", "a.po", None),
    ],
)  # fmt: skip
def test_a_catalogue_of_the_same_or_no_known_language_is_translated(
    declared: str, name: str, language: str | None
) -> None:
    content, left = translated(in_language(declared), name=name, language=language)
    assert 'msgstr "а дог"' in content.decode()
    assert not left


def test_a_charset_without_the_letters_of_the_translation_becomes_utf_8() -> None:
    source = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n\n# é\nmsgid "dog"\nmsgstr ""\n'
    content, _ = translated(source.encode("latin-1"))
    assert content.decode() == source.replace("ISO-8859-1", "UTF-8").replace('"dog"\nmsgstr ""', '"dog"\nmsgstr "дог"')
    assert translated(source.encode("latin-1"), "same")[0].decode("latin-1").startswith(source[:70])


def test_an_entry_that_breaks_the_grammar_is_named_with_its_line_and_the_others_are_translated() -> None:
    source = f'{HEADER}msgid "a dog"\nmsgstr "\n\nmsgid "a cat"\nmsgstr ""\n'
    content, left = translated(source.encode())
    assert left == [["a dog", "line 5 is not a line of a .po file"]]
    assert content.decode() == source.replace('cat"\nmsgstr ""', 'cat"\nmsgstr "а цат"')
    with pytest.raises(DataError, match=r"a\.po:1: not a line of a \.po file: Dear"):
        gettext.read(b"Dear all,\nthis is a letter.\n", DocumentInfo("a.po"))


def test_names_of_translators_and_keys_are_named_and_a_lost_placeholder_too() -> None:
    source = f'{HEADER}msgid "translator-credits"\nmsgstr ""\n\nmsgid "<Control>s"\nmsgstr ""\n'
    content, left = translated(source.encode())
    assert content.decode() == source
    assert [why for _, why in left] == ["the place of the translators' names", "a key"]
    source = f'{HEADER}#, c-format\nmsgid "a dog %s"\nmsgstr ""\n'
    info = fields_of(DocumentInfo("a.po", "en", "de"))
    for lost in ("ein Hund", "ein Hund %s %s", "ein Hund %d"):
        result = finished(source.encode(), info, [["a dog %s", lost, None]], [])
        assert result["content"].decode() == source
        assert len(result["left"]) == 1


def test_the_sign_of_a_mnemonic_in_a_placeholder_or_a_name_stays() -> None:
    labels = f'{HEADER}msgid "_Open"\nmsgstr "_Auf"\n\n'
    for msgid in ("Error {error_code} here", "Set file_name here", "R&D", "A &amp; B", "see ~/dogs"):
        content, _ = translated(f'{labels}msgid "{msgid}"\nmsgstr ""\n'.encode(), "same")
        assert polib.pofile(content.decode())[1].msgstr == msgid


def test_a_role_whose_object_has_angle_brackets_stays() -> None:
    """Found in the documentation of Sphinx itself, translated and built."""
    source = f'{HEADER}msgid "A type: :cpp:expr:`const List<int>&` here."\nmsgstr ""\n'
    content, _ = translated(source.encode())
    assert ":cpp:expr:`const List<int>&`" in polib.pofile(content.decode())[0].msgstr


@pytest.mark.parametrize(
    "msgid",
    [
        "a new <app> dog</app> window",
        "an <cmd>ls </cmd> command",
        "select <seq><gui>a</gui><gui> dog</gui> <gui>b</gui></seq>.",
        "type: <screen> <input>run the=<app>dog</app> </input> </screen>",
        "click on the <media><a/><b/></media> icon",
        "a <media type='a b'> </media> dog",
        "a program <a file> <file list>",
        "a <code>$&lt;<b>dog</b>:<b>cat</b>&gt;</code> sleeps",
        "<b>dog</b>-based <a>cat</a>:<x>tree</x> here",
        "see [url=a.b]the dog[/url] of [color=#f00]a [b]red[/b] cat[/color].",
    ],
)
def test_spaces_and_references_beside_tags_stay(msgid: str) -> None:
    assert message(msgid, stand_in="same") == msgid
    reverse = message(msgid, stand_in="reversed")
    assert sorted(TAGS.findall(reverse)) == sorted(TAGS.findall(msgid))
    assert "  " not in reverse


TAGS = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|&\w+;")


@pytest.mark.parametrize(
    ("msgid", "expected"),
    [
        (":class:`~a.B` :func:`~c` runs.", ":class:`~a.B` :func:`~c` рунс."),
        ("The dog of `:cats:` or `HOUSE`.", "Тхе дог оф `:cats:` ор `HOUSE`."),
        (
            'Equal: the lines ``\\"  hello  x\\"`` and ``\\"\\\\thello\\"`` are.',
            'Еяуал: тхе линес ``\\"  hello  x\\"`` анд ``\\"\\\\thello\\"`` аре.',
        ),
        ("The ``dog'' and  the ``cat''", "Тхе ``дог'' анд  тхе ``цат''"),
    ],
)
def test_spaces_beside_markup_and_within_code_stay(msgid: str, expected: str) -> None:
    assert message(msgid) == expected


def test_a_placeholder_beside_a_message_of_icu_keeps_its_braces() -> None:
    """Before, it came back as ``'{'name'}'``."""
    assert message("The dog of {name}: {n, plural, one {# cat} other {# cats}}") == (
        "Тхе дог оф {name}: {n, plural, one {# цат} other {# цатс}}"
    )


@pytest.mark.parametrize(
    ("msgid", "expected"),
    [
        ("{{name}} has {n, plural, one {# dog} other {# dogs}}", "{{name}} хас {n, plural, one {# дог} other {# догс}}"),
        ("{n, plural, one {{{owner}} has # dog} other {dogs}}", "{n, plural, one {{{owner}} хас # дог} other {догс}}"),
        ("{n, plural, one {a {{ x }}} other {{{{y}}} dogs}}", "{n, plural, one {а {{ x }}} other {{{{y}}} догс}}"),
    ],
)  # fmt: skip
def test_doubled_braces_beside_and_in_a_message_of_icu_stay(msgid: str, expected: str) -> None:
    """Before, the outer braces came back in quotes, ``'{'{name}'}'``."""
    assert message(msgid) == expected
    assert message(msgid, "", "same") == msgid


@pytest.mark.parametrize("placeholder", ["{name}", "%(name)s", "$name", "%s"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_placeholder_outside_and_inside_a_message_of_icu_is_no_double(placeholder: str, is_first: bool) -> None:
    """Before, a right translation was refused: the placeholder seemed to come too often."""
    greeting = f"Hi {placeholder}, you have mail."
    plural = f"{{n, plural, one {{{placeholder} has # dog}} other {{{placeholder} has # dogs}}}}"
    msgid = f"{greeting}  {plural}" if is_first else f"{plural}.  {greeting}"
    expected = msgid
    for word in ("Hi", "you", "have", "mail", "has", "dogs", "dog"):
        expected = re.sub(rf"\b{word}\b", letters(word).text, expected)
    assert message(msgid) == expected
    assert message(msgid, "", "same") == msgid


def test_placeholders_get_no_numbers_where_a_branch_has_some_without() -> None:
    """The C library does not take both in one text."""
    msgid = "%s of %d.  {n, plural, one {%s dog} other {dogs}}"
    assert message(msgid, "c-format", "same") == msgid
    assert message(msgid, "c-format", "reversed") == ""


@pytest.mark.parametrize(
    ("flag", "msgid", "expected"),
    [
        ("", "{n, plural, one {# <b>dog</b> & cat} other {# dogs}} R&D", "{n, plural, one {# <b>дог</b> & цат} other {# догс}} Р&Д"),
        ("", "<0>{n, plural, one {a <1>dog</1>} other {<2/> dogs}}</0> run", "<0>{n, plural, one {а <1>дог</1>} other {<2/> догс}}</0> рун"),
        ("", "{n, plural,\\n  one {A dog.  It runs}\\n  other {# dogs}\\n}", "{n, plural,\\n  one {А дог. Ит рунс}\\n  other {# догс}\\n}"),
        ("python-format", "100%% {n, select, a {dog %(x)s} other {100%%}}", "100%% {n, select, a {дог %(x)s} other {100%%}}"),
        ("java-format", "{n, plural, one {it''s a dog} other {# dogs}}", "{n, plural, one {ит''с а дог} other {# догс}}"),
    ],
)  # fmt: skip
def test_branches_of_a_message_of_icu_keep_markup_signs_and_lines(flag: str, msgid: str, expected: str) -> None:
    assert message(msgid, flag, "same") == msgid.replace("dog.  It", "dog. It")
    assert message(msgid, flag) == expected


def test_two_apostrophes_before_a_brace_are_no_quote() -> None:
    """Before, the quote took the end of its branch, and the model read the syntax of the message."""
    assert message("{n, select, a {say ''hi''} other {a dog}}") == "{n, select, a {саю 'хи\u2019} other {а дог}}"


def test_a_tag_over_two_branches_is_text() -> None:
    """No translation of a branch could have a half of it as markup."""
    assert message("{n, plural, one {a <b>dog} other {dogs</b>}}", "", "same") == (
        "{n, plural, one {a <b>dog} other {dogs</b>}}"
    )


@pytest.mark.parametrize(
    ("branch", "translation"),
    [("%(x)s runs", "läuft"), ("%(x)s runs", "%(x)s %(x)s"), ("%s of %d", "%d von %s"), ("a 5%% dog", "ein %(x)s")],
)
def test_a_branch_that_loses_a_placeholder_is_left(branch: str, translation: str) -> None:
    msgid = f"{{n, select, a {{{branch}}} other {{dogs}}}}"
    content = f'{HEADER}#, python-format\nmsgid "{msgid}"\nmsgstr ""\n'.encode()
    info = fields_of(DocumentInfo("a.po", "en", "de"))
    result = finished(content, info, [[branch, translation, ()], ["dogs", "Hunde", ()]], [])
    assert result["content"] == content
    result = finished(content, info, [[branch, branch, ()], ["dogs", "Hunde", ()]], [])
    assert f'msgstr "{{n, select, a {{{branch}}} other {{Hunde}}}}"' in result["content"].decode()


def test_numbered_tags_are_markup() -> None:
    """Lingui and i18next write them for the components of a page."""
    text = "See <0>the dog</0>, <1/> or <2>a <3>cat</3></2>."
    assert message(text) == "Сее <0>тхе дог</0>, <1/> ор <2>а <3>цат</3></2>."
    assert message("see <0>the dog</0> run", "", "reversed") == "рун <0>дог тхе</0> сее"
    assert message("I <3 dogs > cats, 5 <6> b") == "И <3 догс > цатс, 5 <6> б"


def test_several_words_in_angle_brackets_stay_and_are_named() -> None:
    content, left = translated(f'{HEADER}msgid "<no entries>"\nmsgstr ""\n'.encode())
    assert b'msgstr ""' in content
    assert left == [["<no entries>", "it looks like a tag"]]


@pytest.mark.parametrize("stand_in", ["reversed", "careless"])
def test_roles_that_come_together_do_not_run_together(stand_in: str) -> None:
    made = message(":data:`a`, :data:`b`, :data:`c` and :data:`d` are in the house", "", stand_in)
    assert len(re.findall(r"(?<![`:]):data:`[a-d]`", made)) == 4


def test_a_role_beside_code_is_set_off() -> None:
    """A model may leave out the words between them."""
    content = f'{HEADER}msgid "See :rfc:`5322`, or ``False`` here"\nmsgstr ""\n'.encode()
    info = fields_of(DocumentInfo("a.po", "en", "de"))
    (text,) = texts(content, info)["texts"]
    assert text == "See , or ``False`` here"
    made = finished(content, info, [[text, "Siehe ``False``", ((0, 0), (3, 1))]], [])["content"].decode()
    assert 'msgstr "Siehe :rfc:`5322`\\\\ ``False``"' in made


def test_only_the_header_declares_a_charset() -> None:
    """A message about charsets keeps its key, which programs look up; the header may stand behind a long licence."""
    licence = "# charset=KOI8-R, as a comment says\n" * 200
    other = 'msgid "Content-Type: text/html; charset=%s\\n"\nmsgstr "Inhalt: charset=%s\\n"\n'
    source = f'{licence}msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n\n{other}\nmsgid "dog é"\nmsgstr ""\n'
    content, _ = translated(source.encode("latin-1"))
    changed = source.replace('charset=ISO-8859-1\\n"', 'charset=UTF-8\\n"')
    assert content.decode() == changed.replace('"dog é"\nmsgstr ""', '"dog é"\nmsgstr "дог é"')
    assert translated(source.encode("latin-1"), "same")[0].decode("latin-1").endswith('msgstr "dog é"\n')


@pytest.mark.parametrize(
    "start", ['msgid ""\n""\nmsgstr ""\n', 'msgid "" msgstr ""\n', '#, fuzzy\nmsgid  ""\n# note\nmsgstr\n""\n']
)
def test_the_charset_is_that_of_the_header_however_it_is_laid_out(start: str) -> None:
    context = 'msgctxt "x"\nmsgid ""\nmsgstr "charset=KOI8-R"\n\n'
    source = f'{context}{start}"Content-Type: text/plain; charset=ISO-8859-2\\n"\n\nmsgid "dog"\nmsgstr ""\n# łą\n'
    content, _ = translated(source.encode("iso-8859-2"), "same")
    assert content.decode("iso-8859-2") == source.replace('"dog"\nmsgstr ""', '"dog"\nmsgstr "dog"')


def test_a_header_that_is_added_declares_the_encoding_that_is_written() -> None:
    content, _ = translated('msgid "dog"\nmsgstr "Hund"\n\nmsgid "café"\nmsgstr ""\n'.encode("latin-1"))
    assert "charset=UTF-8" in content.decode()
    assert 'msgstr "цафé"' in content.decode()


@pytest.mark.parametrize(
    ("language", "written", "n_forms"),
    [
        ("rus", "ru", 3), ("rus_Cyrl", "ru", 3), ("pol_Latn", "pl", 3), ("zho_Hant", "zh_Hant", 1), ("jpn", "ja", 1),
        ("pt_br", "pt_BR", 2), ("sr@latin", "sr@latin", 3), ("de-at", "de_AT", 2), ("ara", "ar", 6),
    ],
)  # fmt: skip
def test_plural_forms_follow_the_language_however_its_code_is_written(
    language: str, written: str, n_forms: int
) -> None:
    source = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=CHARSET\\nLanguage: \\n"\n\n'
    source += 'msgid "a dog"\nmsgid_plural "dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    catalogue = polib.pofile(translated(source.encode(), name="a.pot", language=language)[0].decode())
    assert catalogue.metadata["Language"] == written
    assert len(catalogue[0].msgstr_plural) == n_forms
    assert catalogue.metadata["Plural-Forms"].startswith(f"nplurals={n_forms};")
    assert ("n > 1" in catalogue.metadata["Plural-Forms"]) == (written == "pt_BR")
