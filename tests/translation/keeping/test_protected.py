"""What must arrive unchanged: found in any text, not found in ordinary words, and missed where it is missing."""

from __future__ import annotations

import pytest

from dragoman.translation.keeping.protected import find, has_letters, missing, not_text
from limits import cpu_limit


def spans(text: str) -> list[str]:
    return [span.text for span in find(text)]


def kinds(text: str) -> list[str]:
    return [span.kind for span in find(text)]


@pytest.mark.parametrize(
    "text",
    [
        "A dog runs on the beach, and it is happy!",
        "The U.S. team, e.g. Mr. Smith, won... didn't it? (Yes/no.)",
        "He said: \"no\" - I don't; we'll see [sic] a& b and c >d & e.",
        "Wait!?! It's 'fine'. Either/or, km/h; self-made, twenty-one.",
        "don't do a:(b) or x=(y). AT&T and R&D",
        "Das Hündchen läuft: ein Mann, eine Frau – „schön“!",
        "一只狗在海滩上跑。他说：“好！”",
        "Собака бежит по пляжу.",
        "Er kommt morgen, d.h. am Montag.",
        "Hij was a.h.w. weg; m.h.t. dette, ca. a.c./d.c., h.c. og c.c. e.h.",
        r"a \\hline\hline b \\cline\toprule c \\newline\n d \\bf\it e \\textbf\x",
        r"and\or, \alpha and \beta; a \\ \hline, \\alpha, ^\s*\w+\\w$ or \\s+\\w\\s, TCP\\IP\x, a\\b\c",
        "Note :this, x *| y, [[see the dog]], a <% b> c, [ [a] ], x* |y| *z, |a| <%>",
        "the a\u00ad4 or a\x017 or b\x01\x7f7 or QM6\x0f7",  # read as a4, a7, b7 and QM67
    ],
)  # fmt: skip
def test_ordinary_text_has_nothing_to_protect(text: str) -> None:
    assert spans(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3.5 and 1,000 on 2024-05-01 or 5/1/2024 at 10:30.", ["3.5", "1,000", "2024-05-01", "5/1/2024", "10:30"]),
        ("1 000 000 or 1'000'000", ["1 000 000", "1'000'000"]),
        ("Call +49 30 1234567, +1 (555) 123-4567 or (030) 12 34 56.",
         ["+49 30 1234567", "+1 (555) 123-4567", "(030) 12 34 56"]),
        ("v3.11.2-rc1 and 3.11.2, iPhone15.", ["v3.11.2-rc1", "3.11.2", "iPhone15"]),
        ("<A picture of the page with a text> <your first name> <a href='x' hidden>x</a> <video controls muted>",
         ["<your first name>", "<a href='x' hidden>", "</a>", "<video controls muted>"]),
        ("#tag, @some.name, #1 :-) <3 xD ;) :smile:", ["#tag", "@some.name", "1", ":-)", "<3", "xD", ";)", ":smile:"]),
        ("👨‍👩‍👧‍👦🇩🇪 1️⃣ 👍🏽 ❤️ ok", ["👨‍👩‍👧‍👦", "🇩🇪", "1️⃣", "👍🏽", "❤️"]),
        ("{a{b}c} {{x}} {{ x.y }} {0} {} ${HOME} $name",
         ["{b}", "{{x}}", "{{ x.y }}", "{0}", "{}", "${HOME}", "$name"]),
        ("{n, plural, one {# dog} other {# {x} dogs}} here", ["{n, plural, one {# dog} other {# {x} dogs}}"]),
        ("%s %(name)d %1$s %-5.2f %d%% 100% sure, 5 % dear", ["%s", "%(name)d", "%1$s", "%-5.2f", "%d", "100%", "5 %"]),
        ("A **big** dog, ~~b~~ ***c d***! x**2, a ** b, a ~~ b, f(**kw)",
         ["**", "**", "~~", "~~", "***", "***", "2", "**"]),
        ("[[name]] @name@ #name# <%= name %> <% end %> $t(a.b) *|FNAME|* a #tag, @user",
         ["[[name]]", "@name@", "#name#", "<%= name %>", "<% end %>", "$t(a.b)", "*|FNAME|*", "#tag", "@user"]),
        ('[X7X] [1] __init__ <x id="7"/> <b>bold</b> <br> &amp; &#39;',
         ["[X7X]", "[1]", "__init__", '<x id="7"/>', "<b>", "</b>", "<br>", "&amp;", "&#39;"]),
        ("See https://a.org/x_(y)?q=1&b=2. (http://b.de/c) www.c.com/, e.org/f!",
         ["https://a.org/x_(y)?q=1&b=2", "http://b.de/c", "www.c.com/"]),
        ("Mail info@example.org, or a.b+c@d-e.co.uk.", ["info@example.org", "a.b+c@d-e.co.uk"]),
        ("Visit example.org/news or docs.example.com.", ["example.org/news", "docs.example.com"]),
        ("21-year-old on the 2nd in the 1980s, 5km, 20%, $7.50", ["21", "2", "1980", "5km", "20%", "$7.50"]),
        ("COVID-19, A4, XK-2041-B, B2B, GPT-4 H-1B", ["COVID-19", "A4", "XK-2041-B", "B2B", "GPT-4", "H-1B"]),
        ("python3, utf8 Python3.11. r2d2 sha256-Wert IPv4为 e4", ["3", "8", "3.11", "r2d2", "256", "4", "e4"]),
        ("3 m2, 5 km2 80 ft2 no5 Ту154", ["3", "5", "80", "5", "154"]),
        ("1920x1080px 4x4 2.5x3 0x1F 3x", ["1920x1080px", "4x4", "2.5x3", "0x1F", "3"]),
        ("CO₂, H₂O Na⁺ und Ca²⁺", ["CO₂", "H₂O", "Na⁺", "Ca²⁺"]),
        ("mailto:a@b.de, tel:+4912 s3://b/k. git@h.com:a/b.git! doi:10.1000/182; 10.1000/1 arXiv:1706.03762",
         ["mailto:a@b.de", "tel:+4912", "s3://b/k", "git@h.com:a/b.git", "doi:10.1000/182", "10.1000/1",
          "arXiv:1706.03762"]),
        ("fe80::1 2001:db8::ff00:42 00:1A:2B:3C:4D:5E 2023-01-02T10:30:00Z, 3-16-148410-X ~/.bashrc C:/a/b "
         "x.php GPL-3.0",
         ["fe80::1", "2001:db8::ff00:42", "00:1A:2B:3C:4D:5E", "2023-01-02T10:30:00Z", "3-16-148410-X", "~/.bashrc",
          "C:/a/b",
          "x.php", "GPL-3.0"]),
        (r"$E=mc^2$, \(x\) \[y\] $$z$$ $5 and $6 HK$ \n", ["$E=mc^2$", r"\(x\)", r"\[y\]", "$$z$$", "$5", "$6"]),
        (r"One.\nTwo\n\nThree and\nfour \nu,\nv \u2014", [r"\n", r"\n\n", r"\n", r"\u2014"]),
        ("{{#if x}}a{{/if}} {{> p}} {{ a | b }} { name } {a b} {% if x %} {# no #} {!! x !!} [% x %] <?php x(); ?>",
         ["{{#if x}}", "{{/if}}", "{{> p}}", "{{ a | b }}", "{ name }", "{% if x %}", "{# no #}", "{!! x !!}",
          "[% x %]", "<?php x(); ?>"]),
        ("$(X) %<name>s %%x%% [b]a[/b] [url=http://a.de]b[/url] [sic] [bob]",
         ["$(X)", "%<name>s", "%%x%%", "[b]", "[/b]", "[url=http://a.de]", "[/url]"]),
        ("%,d or %1$,.2f, 50%,d", ["%,d", "%1$,.2f", "50%"]),
        ("~3 >5 <7 18+ 3 - 4", ["~", "3", ">", "5", "<", "7", "18", "+", "3", "4"]),
        ("either (a) x or b) y, 12(1)(c) dog(s), f(x) (or I) (I)", ["(a)", "b)", "12", "1", "(c)", "(I)"]),
        ("C++, C# and Notepad++ a + b", ["C++", "C#", "Notepad++", "+"]),
        ("ls --no-color -v, --out=a.txt. cat -a-b I--you (-x --all)",
         ["--no-color", "-v", "--out=a.txt", "-x", "--all"]),
        ("a ≠ b ≈ 3 ©2023 x™ dog† ① │ ├── ℹ️", ["≠", "≈", "3", "©", "2023", "™", "†", "①", "│", "├──", "ℹ️"]),
        ("a -> b <- c => d <= e != f && g || h == i | j / k",
         ["->", "<-", "=>", "<=", "!=", "&&", "||", "==", "|", "/"]),
        ("<@U123> <#C1|general> <!here> <:dog:123456>", ["<@U123>", "<#C1|general>", "<!here>", "<:dog:123456>"]),
        ("/usr/bin/x, C:\\x\\y, file.txt, foo_bar, f(), `x y`",
         ["/usr/bin/x", "C:\\x\\y", "file.txt", "foo_bar", "f()", "`x y`"]),
        (r"Copy \\server\share\x.txt to C:\Users\me. (On \\fs-01.local\home$\anna or D:\old\a(1).txt)",
         [r"\\server\share\x.txt", r"C:\Users\me", r"\\fs-01.local\home$\anna", r"D:\old\a(1).txt"]),
        (r"打开\\server\共享\文件.txt。 \\10.0.0.5\c$\Data, \\?\C:\x and \\.\pipe\x!",
         [r"\\server\共享\文件.txt", r"\\10.0.0.5\c$\Data", r"\\?\C:\x", r"\\.\pipe\x"]),
        (r"\\my_server\share\a.txt, \\wsl$\Ubuntu\home, (\\server@SSL\DavWWWRoot\x) C:\a(1 (C:\a(1)\b). C:\x..",
         [r"\\my_server\share\a.txt", r"\\wsl$\Ubuntu\home", r"\\server@SSL\DavWWWRoot\x", r"C:\a(1", r"C:\a(1)\b",
          r"C:\x"]),
        ("见https://a.org/x的网页，邮箱info@example.org，共3个。", ["https://a.org/x", "info@example.org", "3"]),
        ("<0>Save</0> it <1/> or <12 /> now, I <3 you", ["<0>", "</0>", "<1/>", "<12 />", "<3"]),
        ("Wähle <3>dies</3> jetzt <3", ["<3>", "</3>", "<3"]),
    ],
)  # fmt: skip
def test_what_must_arrive_is_found_where_it_stands(text: str, expected: list[str]) -> None:
    assert spans(text) == expected
    assert all(text[span.start : span.end] == span.text for span in find(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- A dog", ["- "]),
        ("  • A - dog", ["• "]),
        ("> > # A dog", ["> > # "]),
        ("- [ ] {x} dogs", ["- [ ] ", "{x}"]),
        ("*\u00a0A dog", ["*\u00a0"]),
        ("(iv) 3 dogs", ["(iv) ", "3"]),
        ("— Hello", ["— "]),
        ("•\tA dog", ["•\t"]),
        ("a)\u2003A dog", ["a)\u2003"]),
        ('**"A dog"** 这是**重要**的 ~~"a"~~', ["**", "**", "**", "**", "~~", "~~"]),
        ("-A dog", ["-"]),
        ("—Él viene", ["—"]),
        ("-COVID-19 is here", ["19"]),
        ("-dog", []),
        ("•A dog", ["•"]),
        (">A dog > a cat", [">", ">"]),
        ("*A footnote", ["*"]),
        ("*A* dog", []),
        ("» A dog", ["» "]),
        ("» Hallo « sagte er", []),
        ("[x] A dog", ["[x] "]),
        ("aa) A dog", ["aa) "]),
        ("1.) A dog", ["1.) "]),
        ("- ", []),
        ("A dog - a cat", []),
        ("(it) a", []),
        ("He) a", []),
    ],
)
def test_what_stands_before_an_entry_of_a_list_must_arrive(text: str, expected: list[str]) -> None:
    """They were lost without a word, and the weak model of a small corpus made something else of the whole line."""
    assert spans(text) == expected


def test_a_subscript_may_become_a_digit() -> None:
    assert missing(find("CO₂ is bad"), "CO2 ist schlecht", "CO₂ is bad", "de") == []
    assert [span.text for span in missing(find("CO₂ or CO₂"), "CO2 ist", "CO₂ or CO₂", "de")] == ["CO₂"]


def test_a_mark_of_a_list_is_no_hyphen() -> None:
    for translation, lost in (("Ein Test-Hund", ["- "]), ("– Ein Hund", ["- "]), ("- Ein Hund", [])):
        assert [span.text for span in missing(find("- A dog"), translation, "- A dog", "de", "en")] == lost


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("访问Node.js官网，请打开config.yaml文件", ["Node.js", "config.yaml"]),
        ("看example.com网，关注@user你好", ["example.com", "@user"]),
        ("在/usr/bin/目录用foo_bar函数，调用a.b()方法", ["/usr/bin/", "foo_bar", "a.b()"]),
        ("A4纸、v1.2版、$name变量和%NAME%的", ["A4", "v1.2", "$name", "%NAME%"]),
        ("電話は+86 10 1234 5678まで。設定ファイルconfig.tomlを開く", ["+86 10 1234 5678", "config.toml"]),
        ("Node.js를 A4에서", ["Node.js", "A4"]),
        ("ใช้ไฟล์config.yamlเพื่อ", ["config.yaml"]),
        ("请看「报告.pdf」，不是其他.exe", ["报告.pdf"]),
        ("他/她/它，和/或", []),
        ("naïve.txt ist na\u0131ve.txt", ["naïve.txt", "naıve.txt"]),
        ("https://example.com에서 확인하세요. https://ko.wikipedia.org/wiki/한국 참조",
         ["https://example.com", "https://ko.wikipedia.org/wiki/한국"]),
        ("www.example.com/a2을 https://a.org/x_(y)에서", ["www.example.com/a2", "https://a.org/x_(y)"]),
        ("ดูที่https://example.com/aที่นี่ https://th.wikipedia.org/wiki/ไทย",
         ["https://example.com/a", "https://th.wikipedia.org/wiki/ไทย"]),
        ("ເບິ່ງ https://example.comແລ້ວ https://example.comတွင် https://example.comនៅ", ["https://example.com"] * 3),
    ],
)  # fmt: skip
def test_words_without_spaces_beside_a_name_are_no_part_of_it(text: str, expected: list[str]) -> None:
    assert spans(text) == expected


def test_each_kind_is_named() -> None:
    assert kinds("3 x@y.org http://a.b/c %s 🙂 <b> A4 /a/b/c #x `c` ab.org") == [
        "number", "e-mail address", "url", "placeholder", "emoji", "markup", "identifier", "path", "name", "code",
        "domain",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["aaaa" * 25_000, "<a " * 20_000, "{" * 50_000, "http://" + "(" * 50_000, "1." * 50_000, "a." * 50_000,
     "+1" * 40_000, "ab-" * 30_000 + ".", "`" * 9_999,
     "{a,plural " * 5_000, ":a" * 30_000, "00 1 " * 20_000, "a_" * 40_000, "@" * 20_000, "@a" * 30_000, "#a-" * 20_000,
     "[[a." * 20_000, "<% " * 20_000, "*|a" * 20_000, "$t(" * 20_000, "- " * 40_000, "a**" * 30_000, "**" * 40_000,
     "~~a" * 30_000, "* [ ] " * 20_000, " " * 90_000],
)  # fmt: skip
def test_no_text_takes_long(text: str) -> None:
    with cpu_limit():  # a pattern that backtracks takes minutes
        find(text)


def lost(src: str, translation: str, lang: str | None = "de") -> list[str]:
    return [span.text for span in missing(find(src), translation, src, lang)]


@pytest.mark.parametrize(
    ("src", "translation"),
    [
        ("2 dogs and 12 cats", "Zwei Hunde und zwölf Katzen"),
        ("the 1st of 3", "der erste von drei"),
        ("1,000.5 m and 3.5 l", "1.000,5 m und 3,5 l"),
        ("1,000 people", "1000 Menschen"),
        ("10,000", "10 000"),
        ("1\u00ad0\x01\x7f1 dogs", "101 Hunde"),  # nobody sees what stands between its digits
        ("1\u00ad01 dogs", "1\u00ad01 Hunde"),
        ("on 5/1/2024", "am 1.5.2024"),
        ("on 2024-05-01", "am 01.05.2024"),
        ("on 2024-05-01", "am 1. Mai 2024"),
        ("at 10:30", "um 10.30 Uhr"),
        ("at 3:30 pm", "um 15:30 Uhr"),
        ("20 million people", "20 Millionen Menschen"),
        ("3-4 dogs", "drei bis vier Hunde"),
        ("in the 1960s", "in den 60er-Jahren"),
        ("30 or 45 dogs, 10,000 cats", "dreißig oder fünfundvierzig Hunde, zehntausend Katzen"),
        ("at 2:30", "um halb drei"),
        ("at 12:30", "um halb eins"),
        ("at 7:00", "um sieben"),
        ("at 7:00 p.m.", "um 7 Uhr abends"),
        ("in den 60er Jahren", "in the 1960s"),
        ("1,500 thousand", "1,5 Millionen"),
        ("Press %s to {action}.", "{action} mit %s."),
        ("A4 and 4", "A4 und vier"),
        ("ten dogs", "Hunde"),  # no digits, nothing to check
    ],
)
def test_a_number_may_be_written_as_its_reader_does(src: str, translation: str) -> None:
    assert lost(src, translation) == []


def test_chinese_numbers() -> None:
    assert lost("20 million people and 10,000 dogs", "2000万人和1万只狗", "zh") == []
    assert lost("2 dogs", "两只狗", "zh") == []
    assert lost("at 7:30, 30 dogs", "七点半，三十只狗", "zh") == []
    assert lost("in the mid-1990s", "在20世纪90年代中期", "zh") == []
    assert lost("2 dogs", "一只狗", "zh") == ["2"]


@pytest.mark.parametrize(
    ("src", "translation", "expected"),
    [
        ("2 dogs", "Ein Hund", ["2"]),
        ("47 dogs", "Hunde", ["47"]),
        ("3.5 l", "35 l", ["3.5"]),
        ("1,000 m", "100 m", ["1,000"]),
        ("at 10:30", "um 10:45", ["10:30"]),
        ("in the 1960s", "in den 70er-Jahren", ["1960"]),
        ("in 1960", "60 Jahre", ["1960"]),
        ("30 dogs", "dreiundzwanzig Hunde", ["30"]),
        ("30 dogs, 30 cats", "dreißig Hunde", ["30"]),
        ("at 7:45", "um sieben", ["7:45"]),
        ("at 7:30", "um sieben", ["7:30"]),
        ("at 7:30", "um halb neun", ["7:30"]),
        ("1965s", "65er", ["1965"]),
        ("2 dogs, 2 cats", "zwei Hunde", ["2"]),
        ("Press %s to {action}.", "Drücke % s.", ["%s", "{action}"]),
        ("%s and %s", "%s", ["%s"]),
        ("see https://a.org/x2 and 2", "siehe https://a.org/x2", ["2"]),
        ("🙂 and 👍🏽", "👍", ["🙂", "👍🏽"]),
        ("20 million", "200 Hunde", ["20"]),
        ("5\x010 dogs", "5 Hunde", ["5\x010"]),
    ],
)
def test_what_is_missing_is_named_as_often_as_it_is_missing(src: str, translation: str, expected: list[str]) -> None:
    assert lost(src, translation) == expected


def test_a_number_of_thousands_of_digits_is_one_too() -> None:
    long = "1" * 5000
    assert lost(f"a {long}", "ein Hund") == [long]
    assert lost(f"a {long}", f"ein {long}") == []


def test_where_the_words_of_a_language_are_unknown_small_numbers_are_taken_on_trust() -> None:
    assert lost("2 dogs", "Két kutya", "hu") == []
    assert lost("47 dogs", "Kutyák", "hu") == ["47"]
    assert lost("at 7:00", "7 órakor", "hu") == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("00:00:01,000 --> 00:00:03,500", "subtitle times"),
        ("01:02.300 --> 01:04.000 align:start", "subtitle times"),
        ("<p>", "markup"),
        ('<div class="a"><br/></div>', "markup"),
        ("&nbsp;&nbsp;<hr>", "markup"),
        ("for (int i = 0; i < n; i++) {", "code"),
        ("x = model.forward(batch);", "code"),
        ("def translate(self, texts):", "code"),
        ("import os, sys;", "code"),
        ("#include <stdio.h>", "code"),
        ("}", "code"),
        ("self->run(argc, argv);", "code"),
        ("return x + 1;", "code"),
    ],
)
def test_what_is_plainly_no_text_is_named(line: str, what: str) -> None:
    assert not_text(line).startswith(f"{what}, not text: ")


@pytest.mark.parametrize(
    "line",
    [
        "", "A dog runs (on the beach); it is happy.", "<p>A dog runs.</p>", "for (say) ten dogs", "Price = 5 euros.",
        "If (and only if) it rains, we stay;", "From Monday to Friday:", "Use `x = f(y);` here.", "return to sender",
        "It runs from 10:30 to 11:00.", "Class 5: dogs", "import taxes (high)", "😀 (hello) {name}", "7 + 5 = 12",
    ],
)  # fmt: skip
def test_text_is_not_taken_for_something_else(line: str) -> None:
    assert not_text(line) == ""


def test_a_line_of_a_number_with_several_words_is_translated() -> None:
    assert has_letters("1億2000万")
    assert not has_letters("120,000,000")


def test_files_of_one_letter_are_found_where_no_abbreviation_is() -> None:
    assert spans("Open main.c, b.h and a.c now; see x.c.txt.") == ["main.c", "b.h", "a.c", "x.c.txt"]
