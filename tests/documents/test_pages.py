"""Pages of HTML: what browsers show is translated or named, and everything else keeps its bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import html5lib
import pytest
import webencodings
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.real_documents import pages
from benchmarks.real_documents.judging import compare
from benchmarks.real_documents.stand_ins import STAND_INS, letters, translations
from dragoman.documents import opening
from dragoman.documents.document import DocumentInfo, DocumentOptions
from dragoman.documents.html.tokens import tokens
from dragoman.documents.html.units import PageOptions, cut
from dragoman.documents.labels import codec
from dragoman.documents.translate import Report, finished_report, finishing, open_document
from dragoman.documents.units import AlignedText, Translations, units_of, write
from dragoman.errors import DataError
from dragoman.translation.assemble import Translation
from limits import cpu_limit


def translated(
    source: str | bytes, name: str = "a.html", stand_in: str = "letters", options: DocumentOptions | None = None
) -> tuple[bytes, Report]:
    """The page, translated by a stand-in in this process."""
    data = source.encode() if isinstance(source, str) else source
    info = DocumentInfo(name, "en", "de", options=options or DocumentOptions())
    texts = opening.texts(data, opening.fields_of(info))["texts"]
    made = translations(texts, STAND_INS[stand_in])
    return finished_report(opening.finished(**finishing(data, info, made)), made)


def upper(source: str, **elements: Sequence[str]) -> str:
    """The text of a page "translated" to capitals, as for a server: without its attributes."""
    parts = cut(source, PageOptions(**elements)).parts  # type: ignore[arg-type]
    texts = {unit.plain for unit in units_of(parts)}
    links = {text: tuple((i, i) for i in range(len(text.split()))) for text in texts}
    return write(parts, Translations({text: AlignedText(text.upper(), links[text]) for text in texts if text}))


def sentences(source: str) -> list[str]:
    return [unit.plain for unit in units_of(cut(source, PageOptions(attributes=True)).parts) if unit.plain]


RAW_TEXT = [
    "<style><!-- p { } </style><p>one",
    "<style>/* <style> */</style><p>one",
    "<script><!-- <script> </script> --> </script><p>one",
    "<script><!-- </script><p>one",
    "<xmp><p>two</xmp><p>one",
    "<noframes><p>two</noframes><p>one",
    "<SCRIPT>'</scripty>'</Script ><p>one",
    "<!--><p>one",
    "<!---><p>one",
    "<!-- two --!><p>one",
    "<!-- -- > two --><p>one",
    "<!two><p>one",
    "</ two><p>one",
    "<?two><p>one",
    "</><p>one",
    "<p data-a=\"a>b\" id='c''>one",
    "<p id=a\"b'c>one",
    "<p/id=a/>one",
    "<![CDATA[two]]><p>one",
    "<svg><style>a > b</style></svg><p>one",
    "<svg/><p>one",
    "<div =x>one",
]


@pytest.mark.parametrize("source", RAW_TEXT)
def test_only_text_that_a_browser_shows_is_translated(source: str) -> None:
    assert [text for text in sentences(source) if text != "]]>"] == ["one"]
    assert upper(source) in (source.replace("one", "ONE"), source.replace("one", "ONE").replace("]]>", "]]&gt;"))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<title>a <b> c</title>d", ["a <b> c", "d"]),
        ("<p translate=no>no <b translate=yes>yes</b> no</p>", ["yes"]),
        ("a <span class='x notranslate'>no</span> b", ["a b"]),
        ("<p translate=no>no<p>yes", ["yes"]),
        ("<li translate=no>no<li>yes", ["yes"]),
        ("<img translate=no alt=no><img alt=yes>", ["yes"]),
        ("<img alt=a\u00a0b\u3000c\x0bd title=e>", ["a b c d", "e"]),  # only ASCII spaces end a value without quotes
        ("<a href='?translate=no' data-translate=no title='translate=no'>yes</a>", ["translate=no", "yes"]),
        ("press <button>ok</button> now", ["press", "ok", "now"]),
        ("<select><option>one<option>two</select>", ["one", "two"]),
        ("<a>Home</a> <a>About</a>", ["Home", "About"]),
        ("<span>Home</span><span>About us</span>", ["Home", "About us"]),
        ("<b>H</b>ello", ["Hello"]),
        ("<a>Home</a> | <a>About</a> · <i>x</i>", ["Home", "|", "About", "·", "x"]),
        ("<a>Home</a> / <a>About</a> – <a>Us</a>", ["Home", "/", "About", "–", "Us"]),
        ("Garden<i>12</i><b>7</b>", ["Garden", "12", "7"]),
        ("<h1>Main title\n <a href=x>\n ¶\n</a></h1>", ["Main title"]),
        ("<h2>Main title <a href=x>\uf0c1</a></h2>", ["Main title"]),
        ("write to a@b.org<a>show the map</a>", ["write to a@b.org", "show the map"]),
        ("<sup>[1]</sup><b>When it rains</b>", ["When it rains"]),
        ("<a>A licence</a><a id=x></a>; <a>terms</a> apply", ["A licence; terms apply"]),
        ("A dog.<sup><a><i>[</i>5]</a></sup> A cat<sup>2</sup>", ["A dog. A cat"]),
        ("H<sub>2</sub>O, 10<sup>th</sup> and 4<b>月</b>", ["H2O, 10th and 4月"]),
        ("m<sup>2</sup>, a house<sup><a>12</a></sup> cats.<sup>3</sup> The<a>*</a> x<sup>b</sup>", ["m, a house cats. The x"]),
        ("en<b>d</b> Garden <b>7</b>", ["end Garden 7"]),
        ("1<em>2</em> and 15<em>0</em>, <em>7</em>0%", ["12 and 150, 70%"]),
        ("one<img src=a>two<wbr>three.<img>Four", ["one twothree.", "Four"]),
        ("<i>one</i><i>•</i><i>two 3</i>, <b>Ann Lee</b> · 2 days <i>ago</i>, x &gt; <b>y</b>", ["one", "•", "two 3, Ann Lee", "·", "2 days ago, x > y"]),
        ("Regular link<!-- x -->1 and</$b>Ann", ["Regular link1 andAnn"]),
        ("<i>Copy URL</i><i>Copied!</i>, <b>T</b><i>he</i> <b>US</b><i>A</i>", ["Copy URL", "Copied!, The USA"]),
        ("A dog<sup>[<a>source needed</a>]</sup> ran", ["A dog ran", "[source needed]"]),
        ("<textarea>one\n\ntwo</textarea>", ["one", "two"]),
        ("<svg><g>no</g><text>one <tspan>two</tspan></text><desc>three</desc></svg>", ["one", "two", "three"]),
        ("a <svg><title>b</title></svg> c", ["a c", "b"]),
        ("<math><mi>x</mi><mtext>if</mtext></math>", ["if"]),
        ("<svg><foreignObject><p>one</p></foreignObject></svg>", ["one"]),
        ("<svg><g><p>one", ["one"]),
        ("<ruby>漢<rt>かん</rt>字<rt>じ</rt></ruby>", ["漢字"]),
        ("hy&shy;phen&#xAD;ated", ["hyphenated"]),
        ("a&copy=b", ["a©=b"]),
        ("<img alt='a&copy=b'>", ["a&copy=b"]),
        ("<b><i>one</b> two</i>", ["one", "two"]),
        ("<td abbr=one><option label=two><table summary=three><i aria-valuetext=four>", ["one", "two", "three", "four"]),
        ("<input type=submit value=one><input value=no><button value=no>", ["one"]),
        ("<meta name=description content=one><meta name=x content=no><meta property=og:title content='two'>", ["one", "two"]),
        ('<div class="fragment"><div class="line"><a name="l1"></a>no</div></div><p class="fragment">one', ["one"]),
        ('<div class="member-signature">no (<a>no</a> no)</div><dt class="sig sig-object py">no<dd>one', ["one"]),
        ("<td class='x blob-code'>no <i>no</i><td>one", ["one"]),
        ("<link rel=stylesheet title=no><i data-title=no title=one>", ["one"]),
        ("@if (one\n<b>two</b>) {", ["@if (one two) {"]),
    ],
)  # fmt: skip
def test_what_becomes_a_sentence(source: str, expected: list[str]) -> None:
    assert sorted(sentences(source)) == sorted(expected)


TEMPLATES = [
    ("{% if a %}one{% else %}two{% endif %}", ["one", "two"]),
    ("{%- for x in y -%}\n one\n{%- endfor -%}", ["one"]),
    ("{# no\n<p>no</p> #}one", ["one"]),
    ("{% comment %}no{% endcomment %}one {{ x|default('<b>') }}", ["one"]),
    ("{% highlight js %}no{% endhighlight %}one", ["one"]),
    ("{{#if a}}one{{else}}two{{/if}}{{!-- {{no}} --}}{{> part}}{{{raw}}}", ["one", "two"]),
    ('{{ range .Items }}one{{ end }}{{/* no "{{" */}}', ["one"]),
    ('{{ {"a": {"b": 1}} }} one', ["one"]),
    ("one {{ lookup('env', '{{ no }}') }} two", ["one two"]),
    ("one {{ no | default(\"{{ no }} }}\") }} two, it's {{ don't }} and it's {{ three }}", ["one two, it's and it's"]),
    ("one {{{ t('{{{ no }}}') }}} two{% set no = '{% no %}' %}", ["one two"]),
    ("<?php if ($a->b): ?>one<?php endif; ?>", ["one"]),
    ("one <?= $a->b ?>", ["one"]),
    ("one<?php no();", ["one"]),
    ("<% if (a > b) { %>one<% } %><%# no %><%-- no --%>two <%= c > d %>", ["one", "two"]),
    ("@if (a > b) { one } @else { two }", ["one", "two"]),
    ("@for (x of y; track x.id) {\n<p>one</p>\n}", ["one"]),
    ("@for (\n  x of y;\n  track x.id\n) {\n<p>one</p>\n} @empty { two }", ["one", "two"]),
    ("@if (\n  a > b\n  && c < d\n) { one } @else if (\n  a\n) { two }", ["one", "two"]),
    ("@let no = dogs.length > 3;<p>one</p>@let no2 = a < b\n  ? 'no; no' : `no`;two", ["one", "two"]),
    ("{#if a}one{:else}two{/if}{@html no}", ["one", "two"]),
    ("<#if a gt b>one</#if>", ["one"]),
    (
        "[% IF a > b %]one[% ELSE %]two[% END %][%# no %][%- no | html -%] <i>[%]</i> [%a] %]",
        ["one", "two", "[%] [%a] %]"],
    ),
    (
        "[% FOREACH a IN ['no]', \"n\\\"o[\", b.0] %]one[% END %][%# it's no ] %]{% set a = {'b': '}'} %}two{%# it's } %}",
        ["one", "two"],
    ),
    ("<%= no 'no', a: \"<td width='50'>no</td>\" %> one", ["one"]),
    ("one [[${no}]] ${a.b()} %sveltekit.body%", ["one"]),
    ("one {f:no(key: 'a} b', x: {y: z})} two {no.no -> f:no()}", ["one two"]),
    ("{{ t('no', a='<a class=\"no\">no</a>', b=\"it's <b id='no'>\") }} one", ["one"]),
    ('<div {% if a > b %}class="no"{% endif %}>one</div>', ["one"]),
    ('<a href="{{ url("no") }}" {{ attrs }}>one</a>', ["one"]),
    ("<h{{ n }} id=no>one</h{{ n }}>two", ["one", "two"]),
    ("<{{ tag }} class=no>one</{{ tag }}>", ["one"]),
    ("<img alt='one {{ no }} two' title=\"{% if a %}three{% endif %}\">", ["one two", "three"]),
    ("<!--[if IE]><p>no</p><![endif]-->one<!--[if !IE]><!-->two<!--<![endif]-->", ["one", "two"]),
    ("<![if !IE]>one<![endif]>two", ["one", "two"]),
    ("Hello {{ name }}, how are you ({{ x }})?", ["Hello, how are you?"]),
]


@pytest.mark.parametrize(("source", "expected"), TEMPLATES)
def test_code_of_templates_never_reaches_the_model_and_never_disappears(source: str, expected: list[str]) -> None:
    assert sorted(sentences(source)) == sorted(expected)
    for stand_in in STAND_INS:
        content = translated(source, stand_in=stand_in)[0].decode()
        assert sorted(pages.TEMPLATE.findall(content)) == sorted(pages.TEMPLATE.findall(source))
    assert translated(source, stand_in="same")[0].decode() == source


DIRECTIVES = [
    ('<p>A {$dog.name|escape:"a b"} {if $n > 1}one{else}two{/if} {* no *}</p>', ["A", "one", "two"]),
    ("{foreach $a as $b}<li>{$b->c} one</li>{/foreach}{include file='a' title=\"x\"}", ["one"]),
    ("{literal}one{/literal} {l s='no'} two {name} {for us}", ["one", "two {name} {for us}"]),
    (
        "@if ($a > (1))\n<p>one</p>\n@else\n two\n@endif\n@csrf a@if.org or @else.b",
        ["one", "two", "a@if.org or @else.b"],
    ),
    ("@section('no', \")\")\none {!! $no !!} two\n@endsection\n@php\n no();\n@endphp", ["one two"]),
    ("<p>@lang('no') one @guest two", ["@lang('no') one @guest two"]),  # nothing else says that it is Blade
    ("<%inherit file=\"no\"/>\n<%def name='no(x)'>\n% if x > 1:\n one\n% else:\ntwo\n% endif\n</%def>", ["one", "two"]),
    ("<%block name='a'>one</%block>\n## no\n100 % of two\n<%doc>no</%doc>", ["100 % of two", "one"]),
    ("## one\n% two\n100 % if three:", ["## one % two 100 % if three:"]),  # nothing says that it is Mako
    ("<%include x %> one <%= y %>", ["one"]),  # of Ruby
]


@pytest.mark.parametrize(("source", "expected"), DIRECTIVES)
def test_directives_of_smarty_blade_and_mako_are_no_text(source: str, expected: list[str]) -> None:
    assert sorted(sentences(source)) == sorted(expected)
    assert translated(source, stand_in="same")[0].decode().split() == source.split()


@pytest.mark.parametrize(
    "source",
    ["{$a", "{if ", "@if(", "@if('", "<%def ", "{*", "% if a:\n", "{$a{$b}", "@a((", "[% ' ] %]", "{% '\\", "<%<a width=1",
     "{if $a}{* <b> </b>", "<b>{#</b>#}", "<i>@php<b></b>", "<b>{% comment %}<i>'", "\\(", "\\(a", "$$a", "<i>{{</i>}}",
     "{{ '{{", "{{ '}}", "{{ '}}' ", "{{ {'}}' ", "{% '%}"],
)  # fmt: skip
def test_directives_take_linear_time(source: str) -> None:
    with cpu_limit(5):
        cut(f"@csrf {source * 5_000}", PageOptions())


@pytest.mark.parametrize("space", ["", " "])
@pytest.mark.parametrize(
    ("begin", "end"),
    [("{{!--", "--}}"), ("{{/*", "*/}}"), ("{*", "*}"), ("{#", "#}"), ("{% comment %}", "{% endcomment %}")],
)
def test_mentions_of_comments_in_blocks_take_linear_time(begin: str, end: str, space: str) -> None:
    with cpu_limit(5):
        cut(f"<p>{{$x}}</p>{f'<p>{begin}{space}</p>' * 4_000}<p>{end}</p>", PageOptions())
    both = f"<p>{begin}{space}</p><p>{{{{!--</p><p>{{*{space}</p>"
    with cpu_limit(5):
        cut(f"{both * 1_300}<p>--}}}}</p><p>*}}</p><p>{end}</p>", PageOptions())


@pytest.mark.parametrize(
    "source",
    [
        "{{ one",
        "{% one",
        "a {{ {{ b",
        "{f:a( one",
        "{a: one} {a -> b}",
        "{# one",
        "<% one",
        "one [% it's two] three, it's [four %] five",
        "one {% two} three {four %} five",
        "one [% two three [four %] five",
        "one } two",
        "[one two] [one",
        "one [",
        "50 %off% one",
        "write to @let us",
        "@if one",
    ],
)
def test_what_only_looks_like_code_is_text(source: str) -> None:
    assert upper(source).replace("&lt;", "<") == source.upper()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "<th>Share [% of GDP]</th><th class='a]'>Jobs</th><th>Growth [in %]</th>",
            ["Share [% of GDP]", "Jobs", "Growth [in %]"],
        ),
        ("<th>Share {% of GDP}</th><th>Jobs</th><th>{in %}</th>", ["Share {% of GDP}", "Jobs", "{in %}"]),
        ("<p>less than <% of all</p><table width=50%><td>Jobs</table>", ["less than <% of all", "Jobs"]),
    ],
)
def test_a_percent_sign_of_a_text_hides_no_elements(source: str, expected: list[str]) -> None:
    """Before, it began a directive up to a percent sign elsewhere: the words between stayed, and nobody was told."""
    assert sentences(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "<p>Use <b>{*}</b> to expand.</p><p>Lists are values.</p><p>Without <b>{*}</b> nothing changes.</p>",
            ["Use {*} to expand.", "Lists are values.", "Without {*} nothing changes."],
        ),
        (
            "<p>Use <b>{*</b> and <b>*}</b> in C.</p><p>Or <i>{*x</i> one.</p><p>Not <i>*}</i> two.</p>",
            ["Use {* and *} in C.", "Or {*x one.", "Not *} two."],
        ),
        (
            "<pre>{if $a}</pre><p>Put <code>{*</code> here.</p><p>Put <code>*}</code> there.</p>",
            ["Put here.", "Put there."],
        ),
        (
            "<p>Write <code>@if (a)</code>.</p><p>Use <code>@php</code> for PHP:</p><pre><code>@php $a = 1; @endphp</code></pre><p>one</p>",
            ["Write .", "Use for PHP:", "one"],
        ),
        (
            "<code>@if (a)</code><p>The <b>short</b> directive @php runs code.</p><p>It ends at @endphp here.</p>",
            ["The short directive @php runs code.", "It ends at", "here."],
        ),
        *(
            (f"<p>Use <code>{{% {name} %}}</code> here.</p><p>one</p><p>End with <code>{{% end{name} %}}</code>.</p>", ["Use here.", "one", "End with ."])
            for name in ("comment", "highlight js", "style", "schema", "doc", "raw", "verbatim", "javascript")
        ),
        (
            "<table><td>{% comment %}</td><td>one</td><td>two</td><td>{% endcomment %}</td></table>",
            ["one", "two"],
        ),
        *(
            (f"<p>Put <code>{first}</code> before <code>{last}</code>.</p>", ["Put before ."])
            for first, last in (("{#", "#}"), ("{{", "}}"), ("{%", "%}"), ("{{!--", "--}}"), ("{!!", "!!}"), ("[%", "%]"))
        ),
        ("<p>See <code>@if (a)</code> and <code>@for (b) {</code> one.</p>", ["See and one."]),
        (f"<p>{{% comment %}} one</p>{'<p>two</p>' * 6000}<p>{{% endcomment %}}</p>", ["one", *["two"] * 6000]),
    ],
)  # fmt: skip
def test_a_text_about_templates_is_no_template(source: str, expected: list[str]) -> None:
    """Before, the text between two mentions of signs was taken for code, tags and all, and nobody was told."""
    assert [text for text in sentences(source) if any(map(str.isalpha, text))] == expected
    assert translated(source, stand_in="same")[0].decode() == source


@pytest.mark.parametrize(
    "source",
    [
        "<div><p>one</p>{# a note </div> #}</div>",
        "<div>{% comment %} a note </div>{% endcomment %}<p>one</p></div>",
        "<div>{!$a}{* a note <b>x</b> </div> *}<p>one</p></div>".replace("{!", "{"),
        "<div>{% highlight html %}\n <b>a</b>\n</div></body>{% endhighlight %}<p>one</p></div>",
        "<div>@csrf @php $a = '</div>'; @endphp<p>one</p></div>",
        "<b>one {{ t('<b>a</b>') }}</b>",
        "<b>one</b> {% if a == '</b>' %}<b><?php echo '</b>'; ?></b>{% endif %}",
    ],
)
def test_code_of_templates_may_hold_tags(source: str) -> None:
    assert sentences(source) == ["one"]


COMMENTS = [("{#", "#}"), ("{{!--", "--}}"), ("{{/*", "*/}}"), ("{*", "*}"), ("{% comment %}", "{% endcomment %}")]


@pytest.mark.parametrize(("begin", "end"), COMMENTS)
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<div class='row'>\n A dog\n BEGIN </div>\n <div class='row'> END\n A cat barks\n</div>", ["A dog", "A cat barks"]),
        ("<ul><li>A dog BEGIN </li><li> old END</li></ul>", ["A dog"]),
        ("<select><option>BEGIN A</option><option> ENDSend</option></select>", ["Send"]),
        ("<p>BEGIN</p><p>one</p><p>END</p>", None),
        ("<table><td>BEGIN</td><td>begins a comment</td></tr><tr><td>END</td></table>", None),
    ],
)  # fmt: skip
def test_a_comment_may_close_and_open_blocks(begin: str, end: str, source: str, expected: list[str] | None) -> None:
    """A block that holds nothing but the sign names it."""
    words = [text for text in sentences(source.replace("BEGIN", begin).replace("END", end)) if text not in (begin, end)]
    assert words == (expected if expected is not None else [re.search("one|begins a comment", source)[0]])  # type: ignore[index]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{* Copyright (c) 2020 Acme *}\n<h1>About us</h1>", ["About us"]),
        ("{block content}\n{* old <b>dogs</b> *}", ["{block content}"]),
        ('{* a *}<a n:href="Home:">Home</a>', ["Home"]),
    ],
)
def test_a_comment_of_smarty_or_latte_needs_no_other_sign(source: str, expected: list[str]) -> None:
    assert sentences(source) == expected


FORMULA = r"P(A \mid B) = \frac{P(B \mid A)}{P(B)}"


@pytest.mark.parametrize(
    "formula",
    [
        rf'<span class="math inline">\({FORMULA}\)</span>',
        rf'<span class="math display">\[{FORMULA}\]</span>',
        '<span class="math inline"><em>the</em><sup>sum</sup></span>',
        f'<span class="math">$${FORMULA}$$</span>',
        rf'<span class="arithmatex">\({FORMULA}\)</span>',
        f'<span class="katex"><span class="katex-mathml"><math><mtext>if</mtext></math></span>{FORMULA}</span>',
        '<span class="MathJax" id=a><nobr><span class="mi">sum</span></nobr></span>',
        "<mjx-container><mjx-math>sum</mjx-math></mjx-container>",
        rf"\({FORMULA}\)",
        r"\(x\)",
        r"\(a &lt; b\)",
        rf"\[{FORMULA}\]",
        f"$${FORMULA}$$",
        "$$E = mc^2$$",
        "$$ E = mc^2 $$",
        "$$ PV = nRT $$",
        "$$ a + b = f(x), $$",
        r"$$ \int f(x) dx dy = 2 \text{ if it rains} $$",
        "$$\n  F = ma\n$$",
    ],
)
def test_formulas_of_a_page_stay(formula: str) -> None:
    source = f"<p>We know that {formula} holds here.</p>"
    assert sentences(source) == ["We know that holds here."]
    for stand_in in STAND_INS:
        content, report = translated(source, stand_in=stand_in)
        assert content.decode().count(formula) == 1
        assert report.left == ()


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 or $10 here",
        "Places are $ cheap, $$ fair and $$$ dear, $$ most",
        r"Write \(see the note below\) and \[one or two\]",
        r"Escape \\(x\\) and \( alone",
        "$5 in maths class",
        "the variable $$ in bash gives a = b and $$ in make gives c",
        "Prices: food $$, rooms from x = 20, wine $$ (see below).",
        "PostgreSQL quotes bodies as $$ SELECT a = b; many words here $$ in functions.",
        "PostgreSQL quotes bodies as $$ SELECT a = b; $$ too.",
        "Sushi - $$ - A - $$ - Bar",
        "Sushi ($$) A = B ($$) Bar",
        "Sushi $$ (A), Bar $$ (B), Thai $$",
        "Cheap $$ or x = 5 dear $$",
        "Cheap $$, x = 5 $$",
        r"Type \( and then A=1 with some more words \) here",
        r"Type \[ and then A=1 with some more words \] here",
    ],
)
def test_prices_and_brackets_are_no_formulas(text: str) -> None:
    assert sentences(f'<p class="math">{text}</p>') == [text]
    assert sentences(f'<a title="{text}">') == [text]


def test_a_formula_holds_no_comment() -> None:
    assert sentences("Cost $$ <!-- x --> a = b $$ dogs") == ["Cost $$ a = b $$ dogs"]


@pytest.mark.parametrize(
    "icon",
    [
        '<i class="material-icons">search</i>',
        "<mat-icon>search</mat-icon>",
        '<span class="big material-symbols-outlined">search</span>',
        "<i class='material-icons-round md-18'>search</i>",
        "<v-icon>mdi-search</v-icon>",
    ],
)
def test_names_of_icons_stay(icon: str) -> None:
    source = f"<p><a>{icon} Search the site</a></p><button>{icon}</button><p>Press {icon} now</p>"
    assert [text for text in sentences(source) if text] == ["Search the site", "Press now"]
    assert translated(source, stand_in="letters")[0].decode() == (
        f"<p><a>{icon} Сеарцх тхе сите</a></p><button>{icon}</button><p>Пресс {icon} нош</p>"
    )
    assert translated(source, stand_in="reversed")[0].decode().count(icon) == 3


@pytest.mark.parametrize(
    ("source", "text", "why"),
    [
        ("<iframe srcdoc='<p>one</p>'></iframe>", "<p>one</p>", "srcdoc"),
        ("<iframe>one</iframe>", "one", "shown only where"),
        ("<p>a <ruby>b<rp>(</rp><rt>one</rt><rp>)</rp></ruby>", "one", "ruby"),
        ("<p>a<p class='one", "<p class='one", "without an end"),
        ("<svg>one<text>a</text></svg>", "one", "SVG"),
        ("<script type='text/x-template'><p>one</p></script>", "<p>one</p>", "script"),
    ],
)
def test_what_stays_is_named(source: str, text: str, why: str) -> None:
    content, report = translated(source)
    assert [(segment.text, why in segment.why) for segment in report.left] == [(text, True)]
    assert text in content.decode()


def test_annotations_of_a_ruby_stay_with_it() -> None:
    ruby = "<ruby>dog<rp>(</rp><rt>x</rt><rp>)</rp></ruby>"
    assert (
        translated(f"<p>The {ruby} sleeps.</p>", stand_in="reversed")[0]
        .decode()
        .count("<rp>(</rp><rt>x</rt><rp>)</rp></ruby>")
        == 1
    )


def test_a_ruby_of_several_words_keeps_each_reading_at_its_word() -> None:
    for ruby in ("<ruby>dog<rt>x</rt>cat<rt>y</rt></ruby>", "<ruby><rb>dog<rt>x<rb>cat<rt>y</ruby>"):
        assert translated(f"<p>{ruby} sleep</p>", stand_in="same")[0].decode() == f"<p>{ruby} sleep</p>"


MESSAGE = "{n, plural, =0 {<b>no</b> dogs of {{ name }}} one {one dog} other {# dogs &amp; cats}}"
"""As Angular has them."""


def test_branches_of_a_message_of_icu_are_translated() -> None:
    content, report = translated(f"<p>Ann and {{name}} have {MESSAGE}.</p>{{a, select, x {{A dog}} y {{A cat}}}}")
    assert content.decode() == (
        "<p>Анн анд {name} хаве {n, plural, =0 {<b>но</b> догс оф {{ name }}} one {оне дог} other {# догс &amp; цатс}}."
        "</p>{a, select, x {А дог} y {А цат}}"
    )
    assert report.left == ()


@pytest.mark.parametrize(
    "message",
    [
        "{count, plural, =0 {%No %dogs} =1 {<b>%One</b> %dog} other {{{count}} %dogs %of {gender, select, male {%his} other {%theirs}}}}",
        "{n, plural, one {{{ a }} %dog {m, select, x {{{b}}} other {%one}}} other {{{{c}}} %dogs}}",
        "{n, plural, one {{a} %dog} other {{b} %dogs}}",
    ],
)  # fmt: skip
def test_a_value_at_the_start_of_a_branch_leaves_the_brace_of_the_branch(message: str) -> None:
    """Before, ``{{{`` seemed to open a value, which ended with the braces of the message inside."""
    page = f"<p>%See {message} %here.</p>"
    content, report = translated(page.replace("%", ""))
    assert content.decode() == re.sub(r"%\w+", lambda word: letters(word[0][1:]).text, page)
    assert not report.left


@pytest.mark.parametrize(
    "text",
    [
        "{n, plural, one {it''s # cat} other {cats}} &#38; &mdash; \u2014 &#1;",
        "{n, plural, one {it''s # cat} other {it's '{'#'}' cats}}",
        "Don't {n, plural, one {a &#65; &amp; &#38; cat} other {&lt; &#60; cats}} &copy &#128;",
        "{n, plural, one {a <b>cat</b> &mdash; x \u2014 y} other {<i>b</i>}}",
        "{n, select, a {Tom's dog} other {Tom''s dog}} it''s",
        "&#123;n, plural, one &lcub;a dog} other {b{c, select, x {a&shy;b &gt;} other {y > z}}d}&rcub;",
        "a {n, plural, one {<!-- c -->a<br>b} other {&NotEqualTilde; c}}<img alt='a &#65; cat'>, b",
        "a&shy;<b>b</b>&#1;<i>c</i> {n, plural, one {a\u00ad<b>&#1;</b>b} other {c}}",
    ],
)
@pytest.mark.parametrize("name", ["a.html", "a.xhtml"])
def test_a_message_of_icu_that_is_not_translated_keeps_its_bytes(name: str, text: str) -> None:
    for page in (f"<p>{text}</p>", f'<p title="{text}">A dog</p>' if "<" not in text else text):
        document = opening.finished(page.encode(), opening.fields_of(DocumentInfo(name, "en", "de")), [], [])
        assert document["content"].decode() == page


def test_a_branch_that_is_not_translated_keeps_its_bytes_beside_one_that_is() -> None:
    page = "<p>Don''t &#38; {n, plural, one {it''s &mdash; \u2014 # cat} other {a dog &mdash; \u2014 &#38; x}}</p>"
    made = [["a dog \u2014 \u2014 & x", "ein Hund & x", None]]
    document = opening.finished(page.encode(), opening.fields_of(DocumentInfo("a.html", "en", "de")), made, [])
    assert document["content"].decode() == page.replace("a dog &mdash; \u2014 &#38;", "ein Hund &#38;")


def test_a_message_of_icu_that_a_block_divides_stays_and_is_named() -> None:
    message = "{n, plural, one {<p>a dog</p>} other {dogs}}"
    content, report = translated(f"<div>{message}</div>A cat")
    assert content.decode() == f"<div>{message}</div>А цат"
    assert [segment.text for segment in report.left] == ["{n, plural, one {", "a dog", "} other {dogs}}"]


@pytest.mark.parametrize(
    "source",
    [
        """<p><img alt="{n, plural, one {%dog &quot;one&quot;} other {%dog's}}"></p>""",
        """<p title='{n, plural, one {%dog &#39;one&#39; "two"} other {%dog}}'></p>""",
        '<p>%see <a title="{n, plural, one {%dog} other {# %dogs}}">%it</a> %now.</p>',
        '<p>%see {n, plural, one {<a title="{m, select, a {%dog} other {%dogs}}">%it</a>} other {%dogs}} %now.</p>',
        "<p>%see <sup>[{n, plural, one {%dog} other {%dogs}}]</sup> %now.</p>",
    ],
)
def test_messages_of_icu_in_attributes_and_notes_are_translated(source: str) -> None:
    expected = re.sub(r"%[\w']+", lambda word: letters(word[0][1:]).text, source).replace("one&", "оне&")
    content, report = translated(source.replace("%", ""))
    assert content.decode() == expected.replace('"two"', '"тшо"')
    assert not report.left


def test_a_message_of_icu_in_an_attribute_that_cannot_be_read_stays_and_is_named() -> None:
    source = '<p>see <a title="{n, choice, 0#dog}">it</a> now.</p>'
    content, report = translated(source)
    assert content.decode() == '<p>сее <a title="{n, choice, 0#dog}">ит</a> нош.</p>'
    assert [segment.text for segment in report.left] == ["{n, choice, 0#dog}"]


@pytest.mark.parametrize(
    "source",
    [
        "@for (x of y; track x) {{ @if (x) {{ <p>{} %here</p> <p>%cat</p> }} }} <p>%end</p>",
        "@if (x) {{ <i>{}</i> }} @else {{ {} }} <p>%end</p>",
        "@switch (x) {{ @case (1) {{ <p>{{{{ a }}}} {}</p> }} }} <p>%end</p>",
    ],
)
def test_the_braces_of_a_message_of_icu_end_no_block_of_angular(source: str) -> None:
    message = "{n, plural, =0 {%no} one {# %dog %of {{ a }}} other {%dogs {m, select, a {%x} other {%only #}}}}"
    page = source.format(message, message)
    content, report = translated(page.replace("%", ""))
    assert content.decode() == re.sub(r"%\w+", lambda word: letters(word[0][1:]).text, page)
    assert not report.left


def test_a_message_of_icu_without_an_end_takes_no_braces_of_blocks() -> None:
    content, report = translated("@if (x) { <p>{n, plural, one {a dog</p> <p>Second</p> } <p>Last</p> }")
    assert content.decode() == "@if (x) { <p>{n, plural, one {a dog</p> <p>Сецонд</p> } <p>Ласт</p> }"
    assert [segment.text for segment in report.left] == ["{n, plural, one {a dog"]


def test_shortcodes_of_wordpress_are_no_text() -> None:
    page = (
        '[gallery ids="1,2"] <p>%a [contact-form-7 id=5 title="Contact form"] %dog [%see %below] [%x]</p>'
        "<p>[caption id=&quot;a b&quot; x]%dogs[/caption] [row]%two[/row] [/%cat] [%dog %of %x]</p>"
        "<b [class]='x' (click)='y' title='%three [embed src=“a b”/]'>%end</b>"
    )
    content, report = translated(page.replace("%", ""))
    assert content.decode() == re.sub(r"%\w+", lambda word: letters(word[0][1:]).text, page)
    assert [segment.text for segment in report.left] == ["Contact form"]


@pytest.mark.parametrize("stand_in", ["letters", "reversed"])
@pytest.mark.parametrize(
    "source",
    [
        "<p>the [b]red dog[/b] barks loudly</p>",
        "<p>the [img a=1] dog [b]red cat[/b] and [img a=2]big cow[/img] sing [embed]here now[/embed] loudly</p>",
        "<p>the <i>small [my-box x='1']red dog[/my-box] and</i> cat</p>",
        "<p title='the [b]red dog[/b] barks loudly'>dog</p>",
    ],
)
def test_shortcodes_in_pairs_enclose_their_words(source: str, stand_in: str) -> None:
    """Before, both halves were placeholders, and stood side by side in a language of another order."""
    pair = re.compile(r"\[([a-z-]+)[^\]]*\]([^\[\]]*)\[/\1\]")
    content = translated(source, stand_in=stand_in)[0].decode()
    before = {match[1]: set(letters(match[2]).text.split()) for match in pair.finditer(source)}
    assert {match[1]: set(match[2].split()) for match in pair.finditer(content)} == before
    assert sorted(re.findall(r"\[[^\]]*\]", content)) == sorted(re.findall(r"\[[^\]]*\]", source))


def test_shortcodes_around_blocks_and_across_elements_keep_their_places() -> None:
    source = "[row]<p>A dog</p>[/row] <p>the [b]red <i>dog[/b] barks</i> loudly [/b] [x]</p>"
    expected = "[row]<p>А дог</p>[/row] <p>тхе [b]ред <i>дог[/b] баркс</i> лоудлю [/b] [ж]</p>"
    assert translated(source)[0].decode() == expected


def test_words_in_the_arguments_of_shortcodes_are_named() -> None:
    page = (
        '<p>see [contact-form-7 id="1" title="Contact us" html_class="big red"] or [x a="dog"] here</p>'
        "[caption id=1 caption=&quot;A dog here&quot;]cats[/caption]<i title='one [embed alt=\"Two cats\"]'>dog</i>"
        '<pre>[contact-form-7 title="No words"]</pre><p>a [link text="so on](b)</p>'
    )
    content, report = translated(page)
    assert [(segment.text, segment.why) for segment in report.left] == [
        (text, "text in a shortcode") for text in ("Contact us", "A dog here", "Two cats")
    ]
    assert all(text in content.decode() for text in ("Contact us", "A dog here", "Two cats"))


@pytest.mark.parametrize(
    "source",
    [
        *("[a ", "[a b=", "[a b='", '[a b="c" ', "[a b=c]", "[/a]", "{a, select, b {", "@if (a) {}"),
        *(
            "[a]x[/a]",
            "[a]x",
            '[a b="dog cat"]',
            "@let a=",
            '@let a="b" ',
            "@for (\n",
            "{n, plural, one {{{a}} ",
            "{{{a}}",
        ),
    ],
)
def test_shortcodes_and_messages_take_linear_time(source: str) -> None:
    with cpu_limit(5):
        cut(f"@if (a) {{{source * 5_000}", PageOptions(attributes=True))


def test_entities_are_written_as_the_source_wrote_them() -> None:
    source = (
        "<p>10&nbsp;km &mdash; \xa0 caf&eacute; AT&T 1 < 2 > 0 &quot;x&quot; &hellip;</p><i title='a &amp; b > c'>d</i>"
    )
    assert translated(source, stand_in="same")[0].decode() == source
    assert upper("a &lt;b&gt; &amp; &apos;") == "A &lt;B&gt; &amp; &apos;"
    assert upper("a &amp b") == "A &amp B"
    assert upper("tea&shy;cup") == "TEACUP"
    assert translated("tea&shy;cup", stand_in="same")[0] == b"tea&shy;cup"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Dog: <u>&nbsp;&nbsp;&nbsp;&nbsp;</u> Date: <u>&nbsp;</u> here", ["Dog: Date: here"]),
        ("Dog:<u>&nbsp; &#xA0;</u>Date, <b>a<i>&nbsp;</i>b</b>", ["Dog:", "Date, a b"]),
        ("Cat&nbsp;&nbsp;|&nbsp;&nbsp;Terms of&nbsp;use", ["Cat", "|", "Terms of use"]),
        ("The dog.&nbsp; The cat &nbsp;sings&nbsp;&#160;here", ["The dog. The cat sings here"]),
        ("See <b>a dog&nbsp;&nbsp;&nbsp; a cat</b> here", ["See", "a dog", "a cat", "here"]),
        ("&nbsp;&nbsp;a dog&nbsp; <b>cat</b>&nbsp;&nbsp;&nbsp;", ["a dog cat"]),
        ("<i title='a&nbsp;&nbsp;&nbsp;b'>d</i>", ["a", "b", "d"]),
        ("<a>A</a>&nbsp;&nbsp;|  <a>B</a> <i>c</i>  – <i>d</i>", ["A", "|", "B c – d"]),
        ("A big<span style='mso-spacerun:yes'>&nbsp; </span>dog runs.", ["A big dog runs."]),  # two spaces of Word
        ("Il dit «&nbsp;Oui&nbsp;»&nbsp; et part.", ["Il dit « Oui » et part."]),
    ],
)
def test_spaces_that_a_browser_shows_keep_their_number(source: str, expected: list[str]) -> None:
    assert translated(source, stand_in="same")[0].decode() == source
    assert sentences(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<i title='one&#10;&#xA;a &amp; two'>a</i>", ["one", "a & two", "a"]),
        ("<i title='one\r\n  two'>a</i>", ["one", "two", "a"]),
        ("<textarea placeholder='one\ntwo'></textarea>", ["one", "two"]),
        ("<img alt='one {{ x }}&#13;&#10;two'>", ["one", "two"]),
    ],
)
def test_the_lines_of_attributes_stay_lines(source: str, expected: list[str]) -> None:
    assert translated(source, stand_in="same")[0].decode() == source
    assert sentences(source) == expected
    assert sentences("<img alt='one\ntwo'>") == ["one two"]


@pytest.mark.parametrize("made", ["a <script>", "a&lt;", "a &amp;", 'a "', "a '", "a </p>", "a {{ x }}"])
def test_a_translation_adds_no_markup(made: str) -> None:
    source = "<p title=\"x\" lang=en>one & two < three<img alt=x title='x'></p>"
    parts = cut(source, PageOptions(attributes=True)).parts
    result = write(parts, Translations({unit.plain: AlignedText(made) for unit in units_of(parts)}))
    tree = html5lib.parse(result, namespaceHTMLElements=False)
    assert "".join(tree.itertext()) == made
    assert [element.tag for element in tree.iter()] == ["html", "head", "body", "p", "img"]
    assert [element.get("title") for element in tree.iter()][3:] == [made, made]


def test_xhtml_is_read_as_xml() -> None:
    source = '<?xml version="1.0"?><!DOCTYPE html [<!ENTITY a "b">]><html><script src="x"/><p>one<br/><![CDATA[a < b]]></p></html>'
    content = translated(source, "a.xhtml")[0].decode()
    assert content == source.replace("one", "оне").replace("<![CDATA[a < b]]>", "а &lt; б")


def test_the_language_is_set_on_request() -> None:
    source = (
        '<html lang="en" dir=ltr><meta http-equiv=content-language content=en><p lang=en-GB>one <i lang=fr>x</i></p>'
    )
    assert translated(source)[0].decode() == source.replace("one", "оне").replace("fr>x<", "fr>ж<")
    on = DocumentOptions(set_lang=True)
    expected = source.replace('lang="en"', 'lang="de"').replace("content=en", "content=de").replace("en-GB", "de")
    assert translated(source, options=on)[0].decode() == expected.replace("one", "оне").replace("fr>x<", "fr>ж<")
    assert translated("<html><p>a", options=on)[0].decode() == '<html lang="de"><p>а'
    info = DocumentInfo("a.html", "en", "zh_TW", options=on)
    assert b'<html lang="zh-TW">' in open_document(b"<html><p>a dog", info).finish({"a dog": letters("a dog")})[0]


def test_encodings_have_the_names_that_browsers_know() -> None:
    for label in webencodings.LABELS:
        if label.startswith(("iso-2022-kr", "iso-2022-cn", "csiso2022kr", "hz-gb", "replacement", "x-user")):
            continue  # browsers do not read them
        encoding, own = webencodings.lookup(label), codec(label)
        assert own is not None, label
        assert encoding is not None
        for byte in range(0xA0, 0xFF):
            data = bytes([byte]) * 2
            shown, right = data.decode(own, "replace")[0], data.decode(encoding.codec_info.name, "replace")[0]
            assert shown in (right, "\ufffd") or "\ue000" <= shown < "\uf900", (label, byte)
    assert codec("klingon") is None


@pytest.mark.parametrize(
    ("label", "data", "shown"),
    [
        ("gb2312", b"\x81@", "丂"), ("x-sjis", "①".encode("cp932"), "①"), ("unicode", "é".encode(), "é"),
        ("latin-1", b"\x93a\x94", "“a”"), ("klingon", "é".encode(), "é"), ("iso-8859-9", b"\x93", "“"),
    ],
)  # fmt: skip
def test_a_page_is_decoded_as_browsers_do(label: str, data: bytes, shown: str) -> None:
    source = f"<meta charset={label}><p>one ".encode() + data + b"</p>"
    content, _ = translated(source, stand_in="same")
    assert content == source
    info = DocumentInfo("a.html")
    assert opening.texts(source, opening.fields_of(info))["texts"] == [f"one {shown}"]


def test_a_few_bytes_that_are_no_characters_stay_and_are_named() -> None:
    source = b"<meta charset=utf-8><p>one</p>" + b"<p>two \xff</p>" + b"<p>three</p>" * 20
    content, report = translated(source)
    assert content == source.replace(b"one", "оне".encode()).replace(b"three", "тхрее".encode())
    assert [segment.text for segment in report.left] == ["two \ufffd"]
    with pytest.raises(DataError, match="UTF-8"):
        translated(b"<meta charset=utf-8>" + b"\xff" * 20)


PIECES = [
    "The dog ", "cat sings. ", "Red house ", ", ", "\n", "&nbsp;", "&amp;", "&lt;b>", "<b>", "</b>", "<i class='u<v'>", "</i>",
    "<br>", "<p>", "</p>", "<div>", "</div>", "<a href=/x>", "</a>", "<ul><li>", "</ul>", "<table><tr><td>", "</table>",
    "<button>", "</button>", "<label>", "<input>", "<script>", "</script>", "<!--", "-->", "<style>", "</style>", "<pre>",
    "</pre>", "<code>", "</code>", "<p translate=no>", "<b translate=yes>", "{{ x }}", "{% if a %}", "<?= $a ?>",
    "<img alt=dog>", '<img alt="The dog">', "</", "<", "<!x>", "<iframe>", "</iframe>", "<select><option>", "</select>",
    "<math><mi>", "</math>", "<h1>", "</h1>", "</x>", "{{", "}}", "<td",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=10).map("".join))
@settings(max_examples=80, deadline=None)
def test_any_mix_keeps_its_skeleton(source: str) -> None:
    """html5lib finds the same elements and comments, each with its words translated, and no new errors."""
    assert "".join(source[token.start : token.end] for token in tokens(source)) == source
    content, report = translated(source)
    named = [segment.text for segment in report.left]
    faults = compare(pages.html(source.encode()), pages.html(content), "letters", named)
    faults += pages.html_faults(source.encode(), content, "letters", named, ".html")
    # words that tags stand within, as in "one<b>two</b>", are the concern of the units
    assert [str(fault) for fault in faults if fault.kind in ("structure", "marks", "parse error", "left")] == []


def test_a_number_that_is_raised_stays_raised() -> None:
    source = "<p>80 ft<sup>2</sup> and 750 m<sup>2</sup></p>"
    assert translated(source, stand_in="letters")[0].decode() == "<p>80 фт<sup>2</sup> анд 750 м<sup>2</sup></p>"
    assert "м<sup>2</sup>" in translated(source, stand_in="reversed")[0].decode()


def test_an_encoding_is_declared_anywhere_before_the_body() -> None:
    head = f"<head><!--{'x' * 5000}--><meta charset=windows-1251><title>"
    page = f"{head}Аренда квартир</title></head><body>Москва".encode("cp1251")
    assert translated(page, stand_in="same")[0] == page


@pytest.mark.parametrize(
    ("source", "stand_in", "expected"),
    [
        # The bracket that opens outside the element and closes inside stays so.
        ("<p>A dog [<b><i>two</i>]</b> cats</p>", "same", "<p>A dog [<b><i>two</i>]</b> cats</p>"),
        # The sign before a value stays with it.
        ("<p>Order #{{ number }} came</p>", "reversed", "<p>#{{ number }} цаме Ордер</p>"),
        (
            "<p>{dog.name ->\n                                  f:format.raw()}</p>",
            "letters",
            "<p>{dog.name ->\n                                  f:format.raw()}</p>",
        ),
    ],
)
def test_brackets_and_values_keep_their_place(source: str, stand_in: str, expected: str) -> None:
    assert translated(source, stand_in=stand_in)[0].decode() == expected


def test_a_link_that_shows_its_address_takes_no_word_of_its_neighbours() -> None:
    address = "https://a.org/b"
    source = f"<p><b>Dog</b> <i>Cat song</i> <a href='x'>{address}</a></p>".encode()
    text = f"Dog Cat song {address}"
    info = DocumentInfo("a.html", "en", "de")
    # The alignment says wrongly that "ende" translates the address.
    answer = Translation(f"Lied ende {address} Katze Hund", 0.0, alignment=((2, 0), (3, 1), (3, 2), (1, 3), (0, 4)))
    content, _ = finished_report(opening.finished(**finishing(source, info, {text: answer})), {text: answer})
    assert f"<a href='x'>{address}</a>".encode() in content


def test_a_text_of_which_only_its_address_is_left_is_named() -> None:
    source, text = b"<p><a href='x'>https://a.org/b</a> (sleeping)</p>", "https://a.org/b (sleeping)"
    info, answer = DocumentInfo("a.html", "en", "de"), Translation("https://a.org/b", 0.0, alignment=((0, 0),))
    content, report = finished_report(opening.finished(**finishing(source, info, {text: answer})), {text: answer})
    assert content == source
    assert [segment.text for segment in report.left] == [text]
