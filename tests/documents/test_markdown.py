"""Markdown of dialects: front matter in three languages, and paragraphs that are left while the rest is translated."""

from __future__ import annotations

import json
import re
import tomllib
from html import unescape

import pytest
import yaml
from markdown_it import MarkdownIt

from benchmarks.real_documents.stand_ins import STAND_INS, letters, translations
from dragoman.documents.document import DocumentInfo, DocumentOptions
from dragoman.documents.translate import Report, open_document
from dragoman.translation.assemble import Translation

TITLE = 'The "dog": it isn\'t # asleep'
YAML = f"---\ntitle: {json.dumps(TITLE)}\ndescription: The cat sings\nsummary: >-\n  A book\ntags: [the dog]\n---\n"
TOML = (
    f"+++\ntitle = {json.dumps(TITLE)}\ndescription = 'The cat sings'\nsummary = 'A book'\n[menu]\ntitle = 'x y'\n+++\n"
)
JSON = json.dumps(
    {"title": TITLE, "description": "The cat sings", "summary": "A book", "a": {"title": "x y"}}, indent=1
)


def translated(
    source: str, mode: str = "letters", name: str = "a.md", front_matter: bool = False
) -> tuple[str, Report]:
    """A document translated by a stand-in, and the report."""
    info = DocumentInfo(name, "en", "de", options=DocumentOptions(front_matter=front_matter))
    opened = open_document(source.encode(), info)
    content, report = opened.finish(translations(opened.texts, STAND_INS[mode]))
    return content.decode(), report


def inner(source: str) -> str:
    """Front matter without the lines around it."""
    return source.strip("+-\n")


@pytest.mark.parametrize(
    ("front", "read"),
    [
        (YAML, lambda text: yaml.safe_load(inner(text))),
        (TOML, lambda text: tomllib.loads(inner(text))),
        (JSON + "\n", json.loads),
    ],
    ids=["yaml", "toml", "json"],
)
def test_front_matter_is_translated_on_request_and_stays_valid(front: str, read: object) -> None:
    assert callable(read)
    same, _ = translated(front + "\nThe dog.\n")
    assert same == front + "\nТхе дог.\n"
    content, report = translated(front + "\nThe dog.\n", front_matter=True)
    before, after = read(front), read(content.removesuffix("\nТхе дог.\n"))
    wanted = {key: letters(before[key]).text for key in ("title", "description", "summary")}
    assert after == {**before, **wanted}
    assert report.left == ()


@pytest.mark.parametrize("text", ["no: yes", "- a dog", "'a dog", "a #dog", "&dog", "null", "12", "*dog", "a dog: "])
def test_a_title_without_quotes_gets_them_where_yaml_needs_them(text: str) -> None:
    info = DocumentInfo("a.md", options=DocumentOptions(front_matter=True))
    opened = open_document(b"---\ntitle: The dog\n---\n", info)
    content, _ = opened.finish({"The dog": Translation(text, 0.0)})
    assert yaml.safe_load(inner(content.decode())) == {"title": text}


@pytest.mark.parametrize("quote", ['"', "'", ""])
def test_a_comment_behind_a_title_stays(quote: str) -> None:
    front = f"---\ntitle: {quote}A dog{quote}  # keep in sync: 'nav'\nid: {quote}a#b{quote}\n---\n"
    content, report = translated(front, front_matter=True)
    assert content == front.replace("A dog", letters("A dog").text)
    assert report.left == ()


def test_a_paragraph_with_too_many_marks_is_left_and_named_and_the_rest_is_translated() -> None:
    long = "*a* [b] " * 3_000
    content, report = translated(f"# The dog\n\n{long.strip()}\n\nThe cat.\n")
    assert content == f"# Тхе дог\n\n{long.strip()}\n\nТхе цат.\n"
    assert [segment.why.partition(",")[0] for segment in report.left] == ["its paragraph has 12"]


CASES = {
    "admonition": ('!!! note "The dog"\n\n    The cat.\n\n    - A book\n', '!!! note "Тхе дог"\n\n    Тхе цат.\n\n    - А боок\n'),
    "tabs": ('=== "The dog"\n\n    ```c\n    the code\n    ```\n', '=== "Тхе дог"\n\n    ```c\n    the code\n    ```\n'),
    "block": ("/// note | The dog\n\nThe cat.\n\n///\n", "/// note | Тхе дог\n\nТхе цат.\n\n///\n"),
    "nested colons": ("::::tip\n:::{note} The dog\nThe cat.\n:::\n::::\n", "::::tip\n:::{note} Тхе дог\nТхе цат.\n:::\n::::\n"),
    "myst fence": ("```{note}\nThe cat.\n```\n\nThe dog.\n", "```{note}\nТхе цат.\n```\n\nТхе дог.\n"),
    "role": ("See {ref}`the dog <dog>` and {kbd}`Ctrl`.\n", "Сее {ref}`тхе дог <dog>` анд {kbd}`Ctrl`.\n"),
    "obsidian callout": ("> [!tip]- The dog\n> The cat ![[a.png]]\n", "> [!tip]- Тхе дог\n> Тхе цат ![[a.png]]\n"),
    "code shortcode": ("{{< highlight c >}}\nthe code\n{{< /highlight >}}\n", "{{< highlight c >}}\nthe code\n{{< /highlight >}}\n"),
    "content of a shortcode": (
        '{% include note.html type="info" content="The dog \'runs\'." text="left" %} <Badge text="the cat" />\n',
        '{% include note.html type="info" content="Тхе дог \'рунс\'." text="left" %} <Badge text="тхе цат" />\n',
    ),
    "shortcode title": ('{{< figure src="a.png" alt="A dog" >}}\n', '{{< figure src="a.png" alt="А дог" >}}\n'),
    "kramdown": ("The dog.\n{: .big}\n\n* TOC\n{:toc}\n", "Тхе дог.\n{: .big}\n\n* ТОЦ\n{:toc}\n"),
    "critic": ("The {++big++} dog {>>why?<<} and ==cat==.\n", "Тхе {++биг++} дог {>>why?<<} анд ==цат==.\n"),
    "formulas": ("The dog \\(a_1\\) and\n\n$$\nx = the\n$$\n", "Тхе дог \\(a_1\\) анд\n\n$$\nx = the\n$$\n"),
    "code below a term": ("Dog\n\n:     { the code }\n", "Дог\n\n:     { the code }\n"),
    "code in a description": ("Dog\n\n: cat\n\n      the code\n\n  > the cat\n", "Дог\n\n: цат\n\n      the code\n\n  > тхе цат\n"),
    "attributes of a block": ('::: {style="color: red"}\nThe dog\n:::\n', '::: {style="color: red"}\nТхе дог\n:::\n'),
    "label of a formula": ("$$c=2$$ (eq:dog)\n\nThe cat.\n", "$$c=2$$ (eq:dog)\n\nТхе цат.\n"),
    "address by a template": ("[The dog][d-1] and [c].\n\n[c]: /c/\n[d-1]: {% link d.md %}\n", "[Тхе дог][d-1] анд [ц][c].\n\n[c]: /c/\n[d-1]: {% link d.md %}\n"),
    "definition below HTML": ("See [Cat].\n\n<div>\n</div>\n  [Cat]: https://a.org\n", "Сее [Цат][Cat].\n\n<div>\n</div>\n  [Cat]: https://a.org\n"),
    "title in HTML": ('A <abbr title="the cat">dog</abbr> runs.\n', 'А <abbr title="тхе цат">дог</abbr> рунс.\n'),
    "emphasis beside a note": ("__The dog.__[^1]\n\n[^1]: The cat.\n", "__Тхе дог.__[^1]\n\n[^1]: Тхе цат.\n"),
    "star that is text": ("A *dog* ** runs\n", "А *дог* \\*\\* рунс\n"),
    "picture in a link": ("[![Dog][badge]][page] and a dog\n", "[![Дог][badge]][page] анд а дог\n"),
    "tilde": ("Dog\n  ~ A cat\n", "Дог\n  ~ А цат\n"),
    "an entity in a cell": ("| a |\n|---|\n| dog &#124; &lt; cat |\n", "| а |\n|---|\n| дог &#124; &lt; цат |\n"),
    "raised word": ("A superscript^2^ and a word^th^ run.\n", "А суперсцрипт^2^ анд а шорд^тх^ рун.\n"),
    "raised": ("The H~2~O and 2^nd^ dog.\n", "Тхе H~2~O анд 2^nd^ дог.\n"),
    "markdown in html": ('<div markdown="1">\nThe **dog**.\n</div>\n', '<div markdown="1">\nТхе **дог**.\n</div>\n'),
    "code in html": ("The <kbd>Enter</kbd> key.\n", "Тхе <kbd>Enter</kbd> кею.\n"),
    "component": ("import A from 'a'\n\n<A title=\"The dog\" b={{c: 1}}>\n  The {x} cat.\n</A>\n",
                  "import A from 'a'\n\n<A title=\"Тхе дог\" b={{c: 1}}>\n  Тхе {x} цат.\n</A>\n"),
    "link of a template": ("[The dog]({{< ref \"a b\" >}}).\n", "[Тхе дог]({{< ref \"a b\" >}}).\n"),
    "foreign label": ("See [the class][a.B].\n", "Сее [тхе цласс][a.B].\n"),
    "attributes of an item": ("* The dog:\n{#dog}\n\n    === \"The cat\"\n\n        The cow.\n",
                              "* Тхе дог:\n{#dog}\n\n    === \"Тхе цат\"\n\n        Тхе цош.\n"),
    "code in brackets": ("[prism classes=\"a b\"]\ndog = 1\n\nthe cat\n[/prism]\n\nThe dog.\n",
                         "[prism classes=\"a b\"]\ndog = 1\n\nthe cat\n[/prism]\n\nТхе дог.\n"),
    "shortcodes side by side": ("A [v=1]dog[/v][v=2]cat[/v] here.\n", "А [v=1]дог[/v][v=2]цат[/v] хере.\n"),
    "code below a tag": ("<my-code>\n```js\nlet dog\n\nlet cat\n```\n</my-code>\n\nThe dog.\n",
                         "<my-code>\n```js\nlet dog\n\nlet cat\n```\n</my-code>\n\nТхе дог.\n"),
    "ends of code in strings": (
        "A dog {{ lookup('env', '{{ item }}') }} runs {{ x | default(\"a }} b\") }} here {% set a = '{% b %}' %} now.\n",
        "А дог {{ lookup('env', '{{ item }}') }} рунс {{ x | default(\"a }} b\") }} хере {% set a = '{% b %}' %} нош.\n",
    ),
    "apostrophes around code": ("It's {{ don't }} and it's {{ dog }}.\n", "Ит'с {{ don't }} анд ит'с {{ dog }}.\n"),
    "shortcode in a sentence": ('A dog {{< figure alt="A dog" >}} runs.\n', 'А дог {{< figure alt="А дог" >}} рунс.\n'),
    "code in a tab": ('{{< tab header="The dog" lang="toml" >}}\n[dog]\n\nthe = "cat"\n{{< /tab >}}\n\nThe dog.\n',
                      '{{< tab header="The dog" lang="toml" >}}\n[dog]\n\nthe = "cat"\n{{< /tab >}}\n\nТхе дог.\n'),
    "a page's script": ("<script setup>\nimport A from './a'\n\nconst dog = A()\n</script>\n\nThe dog.\n",
                        "<script setup>\nimport A from './a'\n\nconst dog = A()\n</script>\n\nТхе дог.\n"),
    "code that a template stores": (
        "{%- set code %}{% raw %}\nexports.dog = function (cat) {\n\n\t// the cow\n};\n{% endraw %}{%- endset %}\n\nThe dog.\n",
        "{%- set code %}{% raw %}\nexports.dog = function (cat) {\n\n\t// the cow\n};\n{% endraw %}{%- endset %}\n\nТхе дог.\n",
    ),
    "code of a template below a tag": (
        "<div>The dog</div>\n{% set code %}\nlet cat = `<b>${the.cat}</b>`;\n{% endset %}\n",
        "<div>Тхе дог</div>\n{% set code %}\nlet cat = `<b>${the.cat}</b>`;\n{% endset %}\n",
    ),
    "text that a template stores": (
        "{% set dog %}\nThe {{ dog }}\nand &amp;\n{% endset %}\n", "{% set dog %}\nТхе {{ dog }}\nанд &amp;\n{% endset %}\n",
    ),
    "attribute on the next line of a quote": (
        '> A <a href="x"\n>   title="The dog">cat</a> sleeps.\n', '> А <a href="x"\n>   title="Тхе дог">цат</a> слеепс.\n',
    ),
    "component of MDC": (
        '::card{title="The dog" icon="a"}\nA cat :badge[Two cows]{color="red"} and :icon{name="b"} :br\nhere.\n#left\nA cow.\n::\n',
        '::card{title="Тхе дог" icon="a"}\nА цат :badge[Тшо цошс]{color="red"} анд :icon{name="b"} :br\nхере.\n#left\nА цош.\n::\n',
    ),
    "options of a component": (
        "::card\n---\nicon: the-dog\nwide: true\n---\nThe cat.\n::\n", "::card\n---\nicon: the-dog\nwide: true\n---\nТхе цат.\n::\n",
    ),
    "leaf directive": ("::film[A film of dogs]{#a}\n\nThe cat.\n", "::film[А филм оф догс]{#a}\n\nТхе цат.\n"),
    "text with attributes": ("A [red cat]{.red} runs.\n", "А [ред цат]{.red} рунс.\n"),
    "footnote in a line": ("A dog^[See *the* cat.] runs^[A cow].\n", "А дог^[Сее *тхе* цат.] рунс^[А цош].\n"),
    "code below HTML": ("<p>\n<b>The dog</b>\n</p>\n```html\n<b>the cat</b>\n```\n\nThe cow.\n",
                        "<p>\n<b>Тхе дог</b>\n</p>\n```html\n<b>the cat</b>\n```\n\nТхе цош.\n"),
    "inline HTML in a block of Markdown": (
        '<div markdown="1">\n<span class="a">\n[The dog](a.md){: .btn }\n</span>\n</div>\n',
        '<div markdown="1">\n<span class="a">\n[Тхе дог](a.md){: .btn }\n</span>\n</div>\n',
    ),
    "code of a file": ("<<< @/a.js#b{1,2 ts:line-numbers} [the dog of b]\n\n<<< @/b.js [c.js]\n",
                       "<<< @/a.js#b{1,2 ts:line-numbers} [тхе дог оф б]\n\n<<< @/b.js [c.js]\n"),
    "export over blank lines": (
        "export async function dogs() {\n  const s = `{\n\nthe ${'}'} cat`\n\n  return <A b={s} />\n}\n\nThe cow.\n",
        "export async function dogs() {\n  const s = `{\n\nthe ${'}'} cat`\n\n  return <A b={s} />\n}\n\nТхе цош.\n",
    ),
    "code in an attribute": (
        "import A from 'a'\n\n<A title=\"{{{ .dog }}} or cat\">\n\nThe cow.\n\n</A>\n",
        "import A from 'a'\n\n<A title=\"{{{ .dog }}} ор цат\">\n\nТхе цош.\n\n</A>\n",
    ),
    "extensions of DocFX": (
        '[!INCLUDE [the note](a.md)]\n\n> [!div class="checklist"]\n> * A dog\n\n'
        ':::image type="content" source="a.png" alt-text="A cat":::\n\n::: zone pivot="the-dog"\n\n'
        'A :::no-loc text="Dog"::: runs, see [!INCLUDE [the cat](b.md)].\n\n> [!VIDEO https://a.org]\n',
        '[!INCLUDE [the note](a.md)]\n\n> [!div class="checklist"]\n> * А дог\n\n'
        ':::image type="content" source="a.png" alt-text="А цат":::\n\n::: zone pivot="the-dog"\n\n'
        'А :::no-loc text="Dog"::: рунс, сее [!INCLUDE [the cat](b.md)].\n\n> [!VIDEO https://a.org]\n',
    ),
    "rows and columns of DocFX": (
        ':::row:::\n   :::column span="2":::\n      The dog\n\n      - A cat\n   :::column-end:::\n:::row-end:::\n\nA cow.\n',
        ':::row:::\n   :::column span="2":::\n      Тхе дог\n\n      - А цат\n   :::column-end:::\n:::row-end:::\n\nА цош.\n',
    ),
    "heads of slides": (
        "# A dog\n\n---\nlayout: two-cols\nclass: big\n---\n\nA cat\n\n::right::\n\nA cow\n\n---\n\nA dog\n",
        "# А дог\n\n---\nlayout: two-cols\nclass: big\n---\n\nА цат\n\n::right::\n\nА цош\n\n---\n\nА дог\n",
    ),
    "pictures of slides": ("![bg left:40%](a.png)\n\n![w:32 h:32](b.png) A dog\n", "![bg left:40%](a.png)\n\n![w:32 h:32](b.png) А дог\n"),
    "directives of DocC": (
        '@Metadata {\n    @DisplayName("A dog")\n    @Image(source: "a", alt: "A cat")\n}\n\n@Row {\n    @Column(size: 2) {\n'
        "        The cow *runs*.\n    }\n}\n\nThe end.\n",
        '@Metadata {\n    @DisplayName("А дог")\n    @Image(source: "a", alt: "А цат")\n}\n\n@Row {\n    @Column(size: 2) {\n'
        "        Тхе цош *рунс*.\n    }\n}\n\nТхе енд.\n",
    ),
    "sections of an RFC": (
        '--- abstract\n\nA dog.\n\n| a | b |\n|---\n| the dog | the cat |\n{: #tab title="The cow"}\n\n--- back\n',
        '--- abstract\n\nА дог.\n\n| а | б |\n|---\n| тхе дог | тхе цат |\n{: #tab title="Тхе цош"}\n\n--- back\n',
    ),
    "head, verse and citation of Pandoc": (
        "% The dog\n% A cat\n\n| The line\n|   goes on\n\nAs [see @smith, here] says.\n",
        "% Тхе дог\n% А цат\n\n| Тхе лине\n|   гоес он\n\nАс [сее @smith, хере] саюс.\n",
    ),
    "outline of Logseq": (
        "type:: a, b\n\n- TODO A dog\n  id:: 1a\n- #+BEGIN_QUOTE\n  A cat\n  #+END_QUOTE\n",
        "type:: a, b\n\n- TODO А дог\n  id:: 1a\n- #+BEGIN_QUOTE\n  А цат\n  #+END_QUOTE\n",
    ),
    "Markua": (
        '{class: info}\nW> A dog\nW> runs.\n\n{format: c, title: "A cat"}\n```\nthe code\n```\n',
        '{class: info}\nW> А дог\nW> рунс.\n\n{format: c, title: "А цат"}\n```\nthe code\n```\n',
    ),
    "boxes of mdbook-admonish": (
        '```admonish warning title="A dog"\nThe *cat*.\n```\n\n~~~admonish\nA cow\n~~~\n',
        '```admonish warning title="А дог"\nТхе *цат*.\n```\n\n~~~admonish\nА цош\n~~~\n',
    ),
    "tabs of VuePress": (":::: tabs\n@tab A dog\nA cat\n@tab:active A cow#2\nThe end\n::::\n",
                         ":::: tabs\n@tab А дог\nА цат\n@tab:active А цош#2\nТхе енд\n::::\n"),
    "keys and a bar": ('Press ++ctrl+alt+del++ or ++esc++.\n\n[=50% "A dog"]\n', 'Пресс ++ctrl+alt+del++ ор ++esc++.\n\n[=50% "А дог"]\n'),
    "text of a figure": (":::{figure} a.png\n:alt: A dog\n:name: the-dog\nA cat\n:::\n", ":::{figure} a.png\n:alt: А дог\n:name: the-dog\nА цат\n:::\n"),
    "shortcodes around words": (
        'A {{< button href="x" >}}big dog{{< /button >}} and {% capture y %}two cats{% endcapture %}.\n',
        'А {{< button href="x" >}}биг дог{{< /button >}} анд {% capture y %}тшо цатс{% endcapture %}.\n',
    ),
    "code between tags over lines": (
        "{%\n  highlight\n  c\n%}\nthe code\n{%\n  endhighlight\n%}\n\nThe dog.\n",
        "{%\n  highlight\n  c\n%}\nthe code\n{%\n  endhighlight\n%}\n\nТхе дог.\n",
    ),
    "tag of MDX that a line with an angle bracket ends": (
        "<Dog />\n\n<div\n  big left-1/2\n  >The dog<br>runs</div>\n\n<pre>\n  <b>the code</b>\n</pre>\n",
        "<Dog />\n\n<div\n  big left-1/2\n  >Тхе дог<br>рунс</div>\n\n<pre>\n  <b>the code</b>\n</pre>\n",
    ),
    "bullets that are indented too far": ("The dog\n\t- a cat\n\t\t- a cow\n", "Тхе дог\n\t- а цат\n\t\t- а цош\n"),
    "code in a comment": (
        "<!--\n- <b>the dog</b>\n```\nthe code\n\nthe end\n```\n-->\n\nThe cat.\n",
        "<!--\n- <b>the dog</b>\n```\nthe code\n\nthe end\n```\n-->\n\nТхе цат.\n",
    ),
    "code below a summary": (
        "<details>\n<summary>The dog</summary>\n```\nthe code\n\nthe end\n```\n</details>\n",
        "<details>\n<summary>Тхе дог</summary>\n```\nthe code\n\nthe end\n```\n</details>\n",
    ),
    "shortcodes of WordPress": (
        'The dog.\n\n[gallery ids="1,2"]\n\nSee [form id="5" title="Contact"] here [see below], [dog a=b](c) and [cat d=e].\n\n[cat d=e]: f\n',
        'Тхе дог.\n\n[gallery ids="1,2"]\n\nСее [form id="5" title="Contact"] хере [сее белош], [дог а=б](c) анд [цат д=е][cat d=e].\n\n[cat d=e]: f\n',
    ),
    "formulas in escaped brackets": (
        "Let \\(a+b\\), \\(f(x)\\) and \\(x, y\\) be (say) dogs.\n\n\\[ x^2 \\]\n\n\\[ x + 2y > 0 \\]\n",
        "Лет \\(a+b\\), \\(f(x)\\) анд \\(x, y\\) бе (саю) догс.\n\n\\[ x^2 \\]\n\n\\[ x + 2y > 0 \\]\n",
    ),
    "words in escaped brackets": (
        "A \\(read-only\\) dog \\[A/B test\\]. \\\n\\(e-mail\\) of [it](a(b)).\n", "А \\(реад-онлю\\) дог \\[А/Б тест\\]. \\\n\\(е-маил\\) оф [ит](a(b)).\n",
    ),
    "HTML in capital letters": ("<IMG SRC=a.png>\n\nThe dog:\n\n    let dog = the cat\n", "<IMG SRC=a.png>\n\nТхе дог:\n\n    let dog = the cat\n"),
    "code in capital letters": (
        "The dog:\n\n<PRE>\nlet dog = the cat\n</PRE>\n\n<P ALIGN=center>\nA <Code>the cat</Code> runs.<BR>\n</P>\n",
        "Тхе дог:\n\n<PRE>\nlet dog = the cat\n</PRE>\n\n<P ALIGN=center>\nА <Code>the cat</Code> рунс.<BR>\n</P>\n",
    ),
    "code in capital letters beside components": (
        "<Dog />\n\n<PRE>\n  let dog = the cat\n</PRE>\n\nA <CODE>the cat</CODE> runs.\n",
        "<Dog />\n\n<PRE>\n  let dog = the cat\n</PRE>\n\nА <CODE>the cat</CODE> рунс.\n",
    ),
    "component with the name of an element": (
        '<Button to={"/dog"}>\n\nA {the.cat} runs.\n\n</Button>\n', '<Button to={"/dog"}>\n\nА {the.cat} рунс.\n\n</Button>\n',
    ),
    "Markdown in HTML in capital letters": (
        '<DIV markdown="1">\nThe **dog**\n</DIV>\n\nA cat.\n', '<DIV markdown="1">\nТхе **дог**\n</DIV>\n\nА цат.\n',
    ),
    "prose that begins as an import": (
        "The dog\nexport default settings (the\n\ncat runs.\n\n## The cow\n\nA house) here.\n\nimport data from 'the dog' into it.\n",
        "Тхе дог\nежпорт дефаулт сеттингс (тхе\n\nцат рунс.\n\n## Тхе цош\n\nА хоусе) хере.\n\nимпорт дата фром 'тхе дог' инто ит.\n",
    ),
    "an import inside a paragraph of MDX": (
        "import A from 'a'; import 'the-dog' // the cat\nexport * from 'b'\nexport default ({ cat }) => <A>{cat}</A>\n\nThe dog\nexport {the} cat.\n",
        "import A from 'a'; import 'the-dog' // the cat\nexport * from 'b'\nexport default ({ cat }) => <A>{cat}</A>\n\nТхе дог\nежпорт {the} цат.\n",
    ),
    "variables of a shell": (
        'Set ${HOST} to the dog (default: "${PORT:-${DOG}}").\n\nSee [a](${base}/x) and [b](${base}/y).\n',
        'Сет ${HOST} то тхе дог (дефаулт: "${PORT:-${DOG}}").\n\nСее [а](${base}/x) анд [б](${base}/y).\n',
    ),
    "formulas that begin with a group": ("A ${a}^2$ and ${\\bf x}$ or $x_{a}$ runs.\n", "А ${a}^2$ анд ${\\bf x}$ ор $x_{a}$ рунс.\n"),
    "signs of percent": (
        "Write 100%% of the dogs and 50%% of the cats %%in code%% or %% a comment %% here.\n",
        "Шрите 100%% оф тхе догс анд 50%% оф тхе цатс %%in code%% ор %% a comment %% хере.\n",
    ),
    "formula below one without an end": (
        "Dogs\n\\begin{document} run.\n\n\\begin{align}\na &= b \\\\\nc &= d\n\\end{align}\n\nA cat.\n",
        "Догс\n\\бегин{document} рун.\n\n\\begin{align}\na &= b \\\\\nc &= d\n\\end{align}\n\nА цат.\n",
    ),
    "code between colons below some without an end": (
        ":::::{math}\n\nThe dog\n\n:::{math}\nthe cat\n:::\n", ":::::{math}\n\nТхе дог\n\n:::{math}\nthe cat\n:::\n",
    ),
    "thematic breaks around a text": ("---\n\n## News\n\nThe dog runs.\n\n---\n\nThe cat.\n", "---\n\n## Нешс\n\nТхе дог рунс.\n\n---\n\nТхе цат.\n"),
    "breaks of MyST around a text": ("+++\n\n## News\n\n+++\n\nThe cat.\n", "+++\n\n## Нешс\n\n+++\n\nТхе цат.\n"),
    "a break behind a space": (" ---\ntitle: The dog\n---\n", " ---\nтитле: Тхе дог\n---\n"),
    "glossary": (
        "```{glossary}\nBig dog\n  An animal that\n  runs.\nCat\n  A cow.\n```\n\nThe dog\n  runs.\n",
        "```{glossary}\nБиг дог\n  Ан анимал тхат\n  рунс.\nЦат\n  А цош.\n```\n\nТхе дог\n  рунс.\n",
    ),
    "head and foot of a card": (":::{card}\nThe dog\n^^^\nThe cat\n+++\nA cow\n:::\n", ":::{card}\nТхе дог\n^^^\nТхе цат\n+++\nА цош\n:::\n"),
    "arguments that are no titles": (
        ":::{solution} my-exercise\nThe dog\n:::\n\n```{solution-start} my-dog\n```\n\n/// html | div.dog\nThe cat\n///\n",
        ":::{solution} my-exercise\nТхе дог\n:::\n\n```{solution-start} my-dog\n```\n\n/// html | div.dog\nТхе цат\n///\n",
    ),
    "directives of sphinx-proof": (
        "```{prf:lemma} The dog\nA cat\n```\n\n:::{prf:axiom} The cow\nA dog\n:::\n",
        "```{prf:lemma} Тхе дог\nА цат\n```\n\n:::{prf:axiom} Тхе цош\nА дог\n:::\n",
    ),
    "title of a table of lists": ("```{list-table} The big dogs\n* - A cat\n```\n", "```{list-table} Тхе биг догс\n* - А цат\n```\n"),
    "code of a program in braces": ("```{python}\n# the dog runs\n```\n\nA cat\n", "```{python}\n# the dog runs\n```\n\nА цат\n"),
    "HTML in a quote with a tab": ("> <div>\n>\tThe dog\n> </div>\n", "> <div>\n>\tТхе дог\n> </div>\n"),
    "HTML in a quote without a space": ("> <div>\n>The dog\n> </div>\n", "> <div>\n>Тхе дог\n> </div>\n"),
    "HTML in a quote in a list": ("- > <p>\n  > The dog\n  > </p>\n", "- > <p>\n  > Тхе дог\n  > </p>\n"),
    "words in brackets with a sign of equality": (
        "It runs [only when the value is x=1] here [video loop src=a].\n", "Ит рунс [онлю шхен тхе валуе ис ж=1] хере [video loop src=a].\n",
    ),
    "notices of docsify": ("?> The dog\n\n!> The **cat** runs\nhere.\n", "?> Тхе дог\n\n!> Тхе **цат** рунс\nхере.\n"),
    "raw HTML without words": ("{{< rawhtml >}}\n<p class=a b=c>\n{{< /rawhtml >}}\n", "{{< rawhtml >}}\n<p class=a b=c>\n{{< /rawhtml >}}\n"),
    "code with strings in a template": ('{% highlight c %}\na = "The dog"\n{% endhighlight %}\n', '{% highlight c %}\na = "The dog"\n{% endhighlight %}\n'),
    "two lines of a quote": ("> The dog\n> sleeps *long\n> here*.\n", "> Тхе дог\n> слеепс *лонг\n> хере*.\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_markup_of_a_dialect_stays_and_its_text_is_translated(case: str) -> None:
    source, wanted = CASES[case]
    for end in ("\n", "\r\n"):
        content, report = translated(source.replace("\n", end))
        assert content == wanted.replace("\n", end)
        assert report.left == ()
        assert translated(source.replace("\n", end), "same")[0] == source.replace("\n", end)


def test_words_in_the_arguments_of_shortcodes_in_brackets_are_named() -> None:
    source = (
        'See [contact-form-7 id="1" title="Contact us" class="big red"] here.\n\n[caption id=1 caption="A dog here"]cats[/caption]\n\n'
        '[quote="Ann Lee"]dogs[/quote] `[x a="no words"]` and [dog a="no cat"].\n\n<div>\n[y label="Two cats"]\n</div>\n\n'
        '```\n[y label="no code"]\n```\n\n[dog a="no cat"]: b\n'
    )
    named = ("Contact us", "A dog here", "Ann Lee", "Two cats")
    content, report = translated(source)
    assert [(segment.text, segment.why) for segment in report.left] == [(text, "text in a shortcode") for text in named]
    assert all(f'="{text}"' in content for text in named)


def test_words_that_stay_in_html_are_named_once() -> None:
    source = (
        '<div>\n[y label="Two cats"] and <ruby>dog<rt>one</rt></ruby>\n<i title=\'[z a="A big cow"]\'>a</i>\n</div>\n\n'
        'A <i title=\'[z a="One big dog"]\'>cat</i> <iframe srcdoc="<p>The sun</p>"></iframe>.^[<i title=\'[z a="So it is"]\'>b</i>]\n\n'
        "> <div>\n> values <min are ignored\n\nA cow.\n"
    )
    content, report = translated(source)
    assert [segment.text for segment in report.left] == [
        "Two cats", "one", "A big cow", "One big dog", "<p>The sun</p>", "So it is", "<min are ignored",
    ]  # fmt: skip
    assert all(segment.text in content for segment in report.left)
    assert content.endswith(f"{letters('A cow.').text}\n")


def test_links_keep_their_words_beside_half_of_an_html_element() -> None:
    source = "Add <source> to ([one](x)), closes [two](y)\n"
    assert translated(source, "reversed")[0] == "[тшо](y) цлосес ([оне](x)), <source> то Адд\n"


def test_emphasis_keeps_its_words_beside_a_closing_tag_too_many() -> None:
    source = '**<a name="x"></a></a>Dog** - the cat\n'
    assert translated(source, "reversed")[0] == 'цат тхе - **<a name="x"></a></a>Дог**\n'


def test_links_side_by_side_are_units_of_their_own_and_words_do_not_run_together() -> None:
    assert translated("See [dog 5](x)[cat 7](y) and\n", "reversed")[0] == "[5 дог](x) Сее анд [7 цат](y)\n"
    source = "is [version=1]PHP 5[/version][version=2]PHP 7[/version] good\n"
    assert translated(source)[0] == "ис [version=1]ПХП 5[/version][version=2]ПХП 7[/version] гоод\n"


def test_tags_on_their_own_lines_part_the_indented_paragraphs_of_mdx() -> None:
    source = (
        "import { Card } from 'c'\n\n<Card>\n\t<Card title=\"A dog\">\n\t\tThe dog.\n\t</Card>\n"
        '\t<Card\n\t\ttitle="A cat"\n\t>\n\t\tThe <code>cat</code>.\n\t</Card>\n</Card>\n'
    )
    written, report = translated(source, "reversed")
    lines = [line for line in source.split("\n") if "title" not in line and "The" not in line]
    assert [line for line in written.split("\n") if line in lines] == lines
    assert report.translated == report.found == 4
    assert "<code>cat</code>" in written


def test_a_page_with_tags_of_a_template_is_no_mdx_whatever_its_code_exports() -> None:
    source = (
        "{% set code %}\nexport default function () {};\n{% endset %}\n\n"
        "<table>\n  <tr>\n    <td>The dog</td>\n    <td>A cat</td>\n  </tr>\n</table>\n"
    )
    written, report = translated(source, "reversed")
    assert written == source.replace("The dog", "дог Тхе").replace("A cat", "цат А")
    assert report.left == ()


def test_a_text_with_attributes_and_a_footnote_stay_whole_in_another_order() -> None:
    source = "See [a red cat]{.red} and :abbr[New York]{#ny} here^[A big dog.].\n"
    written = translated(source, "reversed")[0]
    assert written == "хере^[дог. биг А]. :abbr[Юорк Неш]{#ny} анд [цат ред а]{.red} Сее\n"


def test_a_shortcode_keeps_its_words_in_another_order_and_its_title_is_named() -> None:
    source = (
        'A {{< button >}}big dog{{< /button >}} runs.\n\n{{% notice tip "The big cat" %}}\nA cow.\n{{% /notice %}}\n'
    )
    content, report = translated(source, "reversed")
    assert content == (
        'рунс. {{< button >}}дог биг{{< /button >}} А\n\n{{% notice tip "The big cat" %}}\nцош. А\n{{% /notice %}}\n'
    )
    assert [(segment.text, segment.why) for segment in report.left] == [("The big cat", "text in a shortcode")]


def test_the_text_of_a_property_is_named() -> None:
    content, report = translated("type:: a\ntitle:: The big dog\n\nA cat.\n")
    assert content == "type:: a\ntitle:: The big dog\n\nА цат.\n"
    assert [(segment.text, segment.why) for segment in report.left] == [
        ("title:: The big dog", "a property is not translated")
    ]


def test_a_string_of_javascript_in_an_attribute_that_readers_see_is_translated() -> None:
    source = """<Card title={"A dog"} description={ 'A cat' } label={`a ${b}`} alt={"a\\n"}>\n\nA man\n\n</Card>\n"""
    opened = open_document(source.encode(), DocumentInfo("a.mdx", "en", "de"))
    content, report = opened.finish({text: Translation(f"Das \"Tier {text[2:]}'s", 0.0) for text in opened.texts})
    lines = content.decode().split("\n")
    assert lines[0] == (
        """<Card title={"Das \u201dTier dog's"} description={ 'Das "Tier cat\u2019s' } label={`a ${b}`} alt={"a\\n"}>"""
    )
    assert report.left == ()


def test_texts_in_the_options_of_a_component_are_named() -> None:
    source = "::card\n---\nitems:\n  - label: The big dog\n---\nThe cat.\n::\n"
    content, report = translated(source)
    assert content == source.replace("The cat", "Тхе цат")
    assert [segment.why for segment in report.left] == ["the options of a component are not translated"]
    assert "The big dog" in report.left[0].text


def test_a_directive_that_is_not_known_is_left_and_named() -> None:
    source = ":::{my-box}\nThe cat.\n:::\n\n:::{toctree}\nchapters/dog\n:::\n"
    content, report = translated(source)
    assert content == source
    assert [(segment.text, segment.why) for segment in report.left] == [
        (":::{my-box} The cat. :::", "the directive my-box is not known")
    ]


def test_a_table_that_is_not_understood_is_left_and_named() -> None:
    table = "+-----+-----+\n| dog | cat |\n+=====+=====+\n| a   | b   |\n+-----+-----+\n"
    content, report = translated(f"{table}\nThe dog.\n")
    assert content == f"{table}\nТхе дог.\n"
    assert [segment.why for segment in report.left] == ["a grid table cannot be translated"]


def test_a_tag_over_two_lines_of_a_quote_stays() -> None:
    source = '> <p title="The dog"\n>    class="a">The\n> cat</p>\n'
    content, report = translated(source, "reversed")
    assert content == '> <p title="дог Тхе"\n>    class="a">цат Тхе</p>\n'
    assert report.left == ()
    assert translated(source, "same")[0] == source


def test_a_bracket_stays_on_the_side_of_its_other_bracket() -> None:
    content = " ".join(translated("- [[New] dog sings #7](a.md),\n  a [cat (sleeps)](b.md).\n", "reversed")[0].split())
    assert "[#7, сингс дог [Неш]](a.md)" in content
    assert "[(слеепс). цат](b.md)" in content
    assert translated("[[New dog]](a.md)\n", "reversed")[0] == "[дог\\] \\[Неш](a.md)\n"


def test_documentation_of_an_object_stays() -> None:
    """mkdocstrings: the name of an object is no title, and its options are no text."""
    text = "::: package.module.Name\n    options:\n      show_heading: true\n\nA dog.\n"
    opened = open_document(text.encode(), DocumentInfo("a.md", "en", "de"))
    assert opened.texts == ["A dog."]


def test_no_line_breaks_within_an_element_of_code() -> None:
    source = "The dog sleeps in the house and the song\nhas <code>one two three four five six seven</code> of it\n"
    assert "<code>one two three four five six seven</code>" in translated(source, "reversed")[0]


def test_words_around_an_element_that_a_line_break_divides_stay_outside_of_it() -> None:
    """Before, the link of a picture below its text took the words in front of it, in a language of another order."""
    source = (
        'Example: [A dog runs<br>\n{% include image.html src="a.png" %}](a.md) here.\n\n'
        "We saw **the dog  \nand the cat** run.\n\nWe saw <b>the dog<br>the cat</b> run.\n"
    )
    content, report = translated(source, "reversed")
    assert content == (
        'Ежампле: [рунс дог А<br>\n{% include image.html src="a.png" %}](a.md) хере.\n\n'
        "саш Ше **дог тхе  \nцат тхе анд** рун.\n\nсаш Ше <b>дог тхе<br>цат тхе</b> рун.\n"
    )
    assert report.left == ()


@pytest.mark.parametrize("mode", ["letters", "reversed", "careless"])
def test_a_line_of_attributes_below_a_paragraph_stays_a_line(mode: str) -> None:
    """Kramdown: behind other words such a list would be text."""
    source = "- The dog runs in the\n  large house of cats\n {:.alt}\n- A cat sings\n{:.a #b}\nin the house\n"
    lines = translated(source, mode)[0].splitlines()
    assert [line for line in lines if "{" in line] == [" {:.alt}", "{:.a #b}"]


def test_a_link_whose_label_looks_like_a_citation_is_a_link() -> None:
    source = "#### The dog ([#3] by [@ann])\n\n[#3]: https://a.org\n[@ann]: https://b.org\n"
    content, report = translated(source, "reversed")
    assert "[@ann][@ann]" in content
    assert report.left == ()


def test_a_link_whose_label_has_words_before_a_citation_is_a_link() -> None:
    source = "Changes [made by @ann] and [big n=1] here.\n\n[made by @ann]: https://a.org\n[big n=1]: https://b.org\n"
    content, report = translated(source, "reversed")
    assert content.startswith("хере. [н=1 биг][big n=1] анд [@ann бю маде][made by @ann] Цхангес\n")
    assert report.left == ()


def test_a_label_over_two_lines_of_a_quote_is_translated() -> None:
    source = "> [bar\n> baz] runs\n> > and [bar\n> > baz](/x\n> > 'the dog')\n\n[bar baz]: /x\n"
    content, report = translated(source)
    assert content == "> [бар\n> баз][bar baz] рунс\n> > анд [бар баз](/x\n> > 'тхе дог')\n\n[bar baz]: /x\n"
    assert report.left == ()


@pytest.mark.parametrize(
    "source",
    ["---\nThe dog runs: here.\nThe cat\n\n---\n\n...\n", "+++\nthe dog = here\n\n+++\n"],
    ids=["yaml", "toml"],
)
@pytest.mark.parametrize("front_matter", [False, True])
def test_front_matter_that_cannot_be_read_is_left_and_named(source: str, front_matter: bool) -> None:
    content, report = translated(source, front_matter=front_matter)
    assert content == source
    assert [segment.why for segment in report.left] == ["its front matter could not be followed"]


def test_values_of_front_matter_below_their_keys_and_behind_anchors_are_translated_and_others_named() -> None:
    front = (
        "---\ndescription:\n  A dog runs\n  here\nsummary: &s The cat\ntitle:\n  'A dog'\ntagline: {a: the dog}\n"
        "subtitle: The dog {{ x }}\nexcerpt: '{{ the.cat }}'\nlinkTitle:\n  - the cow\n---\n"
    )
    content, report = translated(front, front_matter=True)
    assert content == (
        front.replace("A dog runs\n  here", "А дог рунс хере")
        .replace("The cat", "Тхе цат")
        .replace("'A dog'", "'А дог'")
    )
    assert [segment.text for segment in report.left] == ["{a: the dog}", "The dog {{ x }}", "- the cow"]


@pytest.mark.parametrize("front", ['---\ntitle: "{}"\nsummary: "{}"\n---\n', '{{"title": "{}", "summary": "{}"}}\n'])
def test_characters_in_two_escapes_are_read_as_one_and_half_of_one_is_named(front: str) -> None:
    content, report = translated(front.format(r"The dog \uD83D\uDE80", r"The cat \uD83D"), front_matter=True)
    assert content == front.format("Тхе дог \U0001f680", r"The cat \uD83D")
    assert [segment.text for segment in report.left] == [r'"The cat \uD83D"']


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("```{glossary}\nBig dog\n  An animal that\n  runs.\nCat\n  A cow.\n```\n", ["Big dog", "An animal that runs.", "Cat", "A cow."]),
        ("> ::::{glossary}\n> Big dog\n>   An animal\n> ::::\n>\n> The dog\n>   runs\n", ["Big dog", "An animal", "The dog runs"]),
        (":::{card}\nThe dog\n^^^\nThe cat\n:::\n", ["The dog", "The cat"]),
        ("?> The dog\n\n!> The cat\nruns.\n", ["The dog", "The cat runs."]),
        ("Set ${HOST} to the dog.\n", ["Set to the dog."]),
        ("A ${N}\\times{N}$ grid, where $x$ runs. And ${n}$, and $m$ too.\n", ["A grid, where runs. And , and too."]),
        ("The dog %%note %% runs.\n\nA cat %% a note%% here.\n", ["The dog runs.", "A cat here."]),
    ],
    ids=["glossary", "glossary in a quote", "card", "docsify", "variable", "formula", "comment"],
)  # fmt: skip
def test_the_model_reads_the_texts_between_the_marks_of_a_dialect(source: str, texts: list[str]) -> None:
    assert open_document(source.encode(), DocumentInfo("a.md")).texts == texts


@pytest.mark.parametrize(
    "module",
    ["export default layout", "export default Layouts.Blog", "export default [a, b]", "export let dog;",
     "import A from 'a'; export const b = 1"],
)  # fmt: skip
def test_an_export_of_mdx_stays(module: str) -> None:
    source = f"{module}\n\nThe dog\n"
    assert translated(source, name="a.mdx")[0] == source.replace("The dog", "Тхе дог")


def test_html_in_a_quote_whose_markers_differ_is_left_and_named() -> None:
    source = "> <p>The\n   > dog\n> </p>\n"
    content, report = translated(source)
    assert content == source
    assert [segment.why for segment in report.left] == ["the markers of its quote differ"]


SHORTCODES = {
    '{{< tab header="The big dog" >}}\n': ["The big dog"],
    '{{< button tooltip="The dog" title="A cat" class="a big" id=\'a b\' >}}\n': ["The dog"],
    "{% note info The big dog %}\nA cat\n{% endnote %}\n": ["info The big dog"],
    '{% include a.html title="The {{ x }} dog here" text=\'no\' %}\n': ["The {{ x }} dog here"],
    'A {{< tooltip "The big cow" >}} and {{% x `the dog\'s` y="a b" %}} {{< z y="the cat" >}}run{{< /z >}} `{{< x "a code" >}}`.\n': [
        "The big cow", "the dog's", "the cat",
    ],
    '{% if page.title == "The dog" %}\n\nA {% link the dog.md %}\n': [],
}  # fmt: skip


@pytest.mark.parametrize("source", SHORTCODES)
def test_words_in_the_arguments_of_tags_are_named(source: str) -> None:
    _, report = translated(source)
    assert [segment.text for segment in report.left] == SHORTCODES[source]
    assert {segment.why for segment in report.left} <= {"text in a shortcode"}


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("```{panels}\nThe dog\n```\n", "the directive panels is not known"),
        ("::: raw\nThe dog\n:::\n", "raw text is not translated"),
        (":::highlight\nThe dog\n:::\n", "raw text is not translated"),
        ("{{< rawhtml >}}\n<p>The dog</p>\n{{< /rawhtml >}}\n", "raw text is not translated"),
        ("+++ The dog runs\n", "a line of +++ is not translated"),
        ("!!! The dog runs here\n", "words of an admonition without quotes are not translated"),
        ("\\section{The big dog}\n", "a command of LaTeX is not translated"),
    ],
)
def test_words_that_a_dialect_keeps_are_named(source: str, why: str) -> None:
    content, report = translated(f"{source}\nA cat.\n")
    assert content == f"{source}\nА цат.\n"
    assert [segment.why for segment in report.left] == [why]


def test_text_in_javascript_of_mdx_stays_and_is_named() -> None:
    source = (
        "import     {A}     from     './a'\n\n{/*\n  * A comment <b>of the</b> writer\n  */}\n\n"
        "A dog {dogs.map((dog) => <b>{dog} runs away</b>)} and `{<b>code</b>}` {a > b && c < d}.\n\n"
        '{\n  <div>\n    <i title="Two cats">The house</i>\n  </div>\n}\n\n<B icon={<img alt="A song"/>}/>\n'
    )
    content, report = translated(source, name="a.mdx")
    assert content == source.replace("A dog", "А дог").replace("and", "анд").replace("A song", "А сонг")
    assert [(segment.text, segment.why) for segment in report.left] == [
        ("runs away", "text in JavaScript"),
        ("The house", "text in JavaScript"),
        ("Two cats", "text in JavaScript"),
    ]


def test_spaces_between_placeholders_at_both_ends_of_a_sentence_stay() -> None:
    source = "{{a}} {{b}} The dog runs in {{c}} {{d}}\n"
    assert translated(source)[0] == "{{a}} {{b}} Тхе дог рунс ин {{c}} {{d}}\n"
    assert "{{a}}{{b}}" not in translated("{{a}}, {{b}} and {{c}} run.\n", "reversed")[0]


def shown(source: str) -> str:
    """Return the text that readers see of a paragraph: markdown-it-py as anybody calls it."""
    html = MarkdownIt("commonmark").enable("table").render(source)
    return unescape(re.sub("<[^<>]*>", "", html)).strip()


BACKSLASHES = {
    "Open \\\\\\\\server\\\\share in the Explorer.": r"Open \\server\share in the Explorer.",
    r"Write \\* and \\_ for a star.": r"Write \* and \_ for a star.",
    r"C:\\Program Files\\(x86) is a folder.": r"C:\Program Files\(x86) is a folder.",
    r"C:\Program Files is a folder.": r"C:\Program Files is a folder.",
    r"Write \&lt; or &amp;copy; for R&D or R\&D.": "Write &lt; or &copy; for R&D or R&D.",
    r"The path C:\\*dog* ends with \\": "The path C:\\dog ends with \\",
    r"# Learn C \#": "Learn C #",
    "> The folder C:\\\\*\n> is here": "The folder C:\\*\nis here",
    "| C:\\\\* |\n|---|\n| x \\\\\\| y |": "C:\\*\n\n\n\n\nx \\| y",
}


@pytest.mark.parametrize("source", BACKSLASHES)
def test_a_backslash_that_readers_see_stays(source: str) -> None:
    assert shown(source) == BACKSLASHES[source]
    content, report = translated(f"{source}\n")
    text = shown(content)
    assert re.sub(r"\w+", "x", text) == re.sub(r"\w+", "x", BACKSLASHES[source])
    assert content != f"{source}\n"
    assert report.left == ()
    assert translated(f"{source}\n", "same")[0] == f"{source}\n"


def test_a_backslash_in_code_a_footnote_and_a_title_stays() -> None:
    source = 'A `\\*` dog^[A C:\\\\* cat] [runs](a "C:\\\\*") \\\\*.\n\n!!! note "The \\\\* dog"\n'
    content, report = translated(source)
    assert content == 'А `\\*` дог^[А C:\\\\* цат] [рунс](a "C:\\\\*") \\\\*.\n\n!!! note "Тхе \\\\* дог"\n'
    assert report.left == ()


def test_addresses_and_code_keep_their_entities_beside_others() -> None:
    source = "The dog &amp; https://a.org/?a=1&amp;b=2 or `a & b` run.\n"
    assert translated(source)[0] == "Тхе дог &amp; https://a.org/?a=1&amp;b=2 ор `a & b` рун.\n"


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        (r"The \\(AB\\) dog, \\(\text{the speed} = \frac{a}{b}\\) and \\[ x\_1 + y \\] run.", ["The dog, and run."]),
        (
            r"Type \\( and then A=1 with some more words \\) here.",
            [r"Type \( and then A=1 with some more words \) here."],
        ),
        (r"Type \( and then A=1 with some more words \) here.", ["Type ( and then A=1 with some more words ) here."]),
        (r"A formula stands between \\( and \\).", [r"A formula stands between \( and \)."]),
        ("The dog\n\\\\[\nx = the\n+ cat\n\\\\]\nruns", ["The dog", "runs"]),
    ],
)
def test_formulas_between_two_backslashes_are_no_text(source: str, texts: list[str]) -> None:
    """Kramdown and others leave one of them to MathJax."""
    assert open_document(source.encode(), DocumentInfo("a.md")).texts == texts
    assert translated(source, "same")[0] == source


MENTIONS = {
    "The dog {*}$args of a cat {*}$b runs.\n": ("The dog {}$args of a cat {}$b runs.", []),
    "{*}$a is the dog, {*}\n": ("{}$a is the dog, {}", []),
    "Both {{ and {% begin a tag, but {{ dog }} is one.\n": ("Both {{ and {% begin a tag, but is one.", []),
    "The dog <% is no <%= cat %> here.\n": ("The dog <% is no here.", []),
    "The sign {{ begins a dog and }} ends it.\n": ("The sign ends it.", ["{{ begins a dog and }}"]),
    "Use {{ to print { and }} for a cat.\n": ("Use for a cat.", ["{{ to print { and }}"]),
    "The sign {# begins a dog and #} ends it.\n": ("The sign ends it.", ["{# begins a dog and #}"]),
    "The sign <% begins a dog and %> ends it.\n": ("The sign ends it.", ["<% begins a dog and %>"]),
    "{{ begins the dog and }}\n": ("", ["{{ begins the dog and }}"]),
    "A {{ dog if cat else cow }} and {{ '{{' }} or {{ t('The dog') }} run.\n": ("A and or run.", []),
}


@pytest.mark.parametrize("source", MENTIONS)
def test_words_between_signs_that_a_sentence_mentions_are_translated_or_named(source: str) -> None:
    text, left = MENTIONS[source]
    assert open_document(source.encode(), DocumentInfo("a.md")).texts == [text] * bool(text)
    assert [segment.text for segment in translated(source)[1].left] == left


CODE_IN_HTML = {
    "a table": "<table>\n<tr><td>\n<pre>\nthe code\n\nthe code\n</pre>\n</td><td>%s</td></tr>\n</table>\n",
    "a script": '<div>\n<script>\nvar a = 1;\n\nalert("the code");\n</script>\n%s\n</div>\n',
    "a style": "<div>\n%s\n<STYLE>\na {}\n\n/* the code */\n</style>\n</div>\n",
    "two": "<div>\n<pre>\na\n\nthe code</pre><pre>\n\n\nthe code\n</pre>\n%s\n</div>\n",
    "two without a box": "<pre>\na\n\nthe code</pre><pre>\n\nthe code</pre>\n\n%s\n",
    "a comment": "<div>\n%s\n<!-- the code\n\nthe <pre> code\n-->\n</div>\n",
    "a formula": "<div>\n<math>\nthe code\n\nthe code\n</math>\n</div>\n\n%s\n",
    "a list": "- <div>\n  <pre>\n  a\n\n  the code\n  </pre>\n  </div>\n\n  %s\n",
    "a quote": "> <div>\n> <pre>\n> a\n>\n> the code\n> </pre>\n> </div>\n>\n> %s\n",
    "a script that writes another": "<div>\n<script>\nwrite('<pre>')\n\nthe('<code')\n</script>\n</div>\n\n%s\n",
}


@pytest.mark.parametrize("case", CODE_IN_HTML)
def test_code_inside_html_stays_behind_a_blank_line(case: str) -> None:
    source = CODE_IN_HTML[case] + "\nA cat.\n"
    content, report = translated(source % "The dog")
    assert content == source.replace("A cat", "А цат") % "Тхе дог"
    assert report.left == ()


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("> <pre>\n> a\n>\n> the code\n\n", "the code"),
        ("> <pre>\n> a\n>\n> the code\n> <pre>\n> b\n\n", "the code > <pre> > b"),
    ],
)
def test_text_below_code_that_begins_a_block_and_is_not_closed_is_left_and_named(source: str, left: str) -> None:
    content, report = translated(f"{source}The dog.\n")
    assert content == f"{source}Тхе дог.\n"
    assert [(segment.text, segment.why) for segment in report.left] == [(left, "<pre> above it is not closed")]


@pytest.mark.parametrize(
    "source",
    [
        "<samp>\n\nThe dog\n\n## A cat\n</samp>\n",
        "<kbd>\n\nThe dog runs [here](a.md).\n\n</kbd>\n",
        "<p><code>x\n\nThe dog\n</code></p>\n",
        "<table><tr><td><pre>a</td></tr></table>\n\nThe dog\n",
        "<div><pre>a</div>\n\nThe dog\n",
        "<div>\n<pre>\na\n\nThe dog\n\n<div>\n<pre>\nb\n</pre></div>\n",
        "- <div>\n  <pre>\n  a\n\n  The dog\n",
        "<h1>`<pre>`</h1>\n\nThe dog\n\n</pre>\n",
        "<summary>A ``<script>``?</summary>\n\nThe dog\n\n<p></script></p>\n",
        "<p>A <!-- cat</p>\n\nThe dog\n",
    ],
)
def test_markdown_below_a_tag_of_code_in_html_is_translated(source: str) -> None:
    content, _ = translated(source)
    assert "Тхе дог" in content


@pytest.mark.parametrize(
    "source",
    [
        r"\\[Optional\\] The dog.",
        r"Hello \\[FirstName\\], your \\(optional\\) dog",
        r"The \\[RFC 1234\\] and foo\\(int a\\)",
        r"A dog \\[see a note\\] and \\(a dog\\)",
        r"The \(EU\) dog",
    ],
)
def test_words_in_escaped_brackets_are_text(source: str) -> None:
    assert open_document(source.encode(), DocumentInfo("a.md")).texts == [shown(source)]


CODE_OF_TEMPLATES = [
    "{{First Name}}", "{{t key}}", '{{formatDate date "YYYY"}}', "{{#each items as |item index|}}", "{* ../x.py hl[1] *}",
    "<%= render partial: 'x' %>", "<% if current user %>", "{# TODO: fix this later #}", "<%# a comment of it %>",
]  # fmt: skip


@pytest.mark.parametrize("code", CODE_OF_TEMPLATES)
def test_code_of_a_template_is_not_named(code: str) -> None:
    for source in (f"The dog {code} runs\n", f"{code}\n\nThe dog\n"):
        content, report = translated(source)
        assert code in content
        assert report.left == ()


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("A dog {{ '%s is {{ x }}", ["A dog"]),
        ("A dog {{ lookup('env', 'HOME/{{ item }}", ["A dog"]),
        ("A {{ isn't a tag, but {{ dog }} is", ["A {{ isn't a tag, but is"]),
    ],
)
def test_a_sign_in_quotes_is_no_mention(source: str, texts: list[str]) -> None:
    assert open_document(source.encode(), DocumentInfo("a.md")).texts == texts


@pytest.mark.parametrize("source", ["Learn C #\n", "- the sign #\n", "> a dog\n> and #\n"])
def test_a_sign_at_the_end_of_a_paragraph_gets_no_backslash(source: str) -> None:
    assert "\\" not in translated(source)[0]


def test_html_below_which_an_element_of_a_sentence_is_not_closed_ends_at_a_blank_line() -> None:
    assert translated("<p>A <code>x</p>\n\nThe dog\n")[0] == "<p>А <code>x</p>\n\nТхе дог\n"


TABLES_OF_SPACES = {
    "rows of lines": """\
  ---------------------------------------------
  Header            Default     Text
  ----------------- ----------- ---------------
  First             row         Example of a
                                row.

  Second            row         Here's another
                                one.
  ---------------------------------------------
""",
    "two lines of headings": """\
----------------------------
 Centered   Default
  Header    Aligned
----------- ----------------
   First    row

  Second    row
----------------------------
""",
    "no headings": """\
----------- -------
   First    row

  Second    row
----------- -------
""",
    "one line a row": "  Right     Left\n-------     ------\n     12     twelve\n",
    "one line a row and no headings": "-------     ------\n     12     twelve\n-------     ------\n",
}


@pytest.mark.parametrize("case", TABLES_OF_SPACES)
def test_a_table_with_columns_of_spaces_is_left_and_named(case: str) -> None:
    table = TABLES_OF_SPACES[case]
    content, report = translated(f"The dog\n\n{table}\n: A cat\n\n-----\n\nThe dog\n")
    assert content == f"Тхе дог\n\n{table}\n: А цат\n\n-----\n\nТхе дог\n"
    assert [(segment.text, segment.why) for segment in report.left] == [
        (" ".join(table.split()), "a table with columns of spaces cannot be translated")
    ]


@pytest.mark.parametrize("ruler", ["--- ---", "---   ---", "- - -"])
def test_text_far_below_a_ruler_is_translated(ruler: str) -> None:
    source = f"{ruler}\nA cat\n\nThe dog\n\nThe dog\n\n{ruler}\n"
    assert translated(source)[0].count("Тхе дог") == 2


def test_text_between_thematic_breaks_is_translated() -> None:
    source = "-----\n\nThe dog\n\n-----\nA cat\n\n--- ---\n\nThe dog\n\n--- ---\n"
    content, report = translated(source)
    assert content == source.replace("The dog", "Тхе дог").replace("A cat", "А цат")
    assert report.left == ()


@pytest.mark.parametrize(
    "source",
    [
        "_The \\_name field is read_ first.",
        "- _Private members such as \\_value are hidden_",
        "> _Open a\\_b and \\_c too_",
        "_The \\_\\_init file is read_ first.",
        "| _The \\_name field_ | dog |\n|---|---|\n| cat | x |",
        "[_the \\_x link_](u)",
        "_The name\\_ field_ of",
        "~~the \\~\\~old dog~~ of",
        "_The snake_case name_ of",
    ],
)
def test_a_sign_that_is_text_does_not_become_emphasis(source: str) -> None:
    """It lost its backslash, and the emphasis began or ended at another place."""
    reader = MarkdownIt().enable(["table", "strikethrough"])
    before, after = (reader.render(text) for text in (source, translated(source)[0]))
    assert re.findall("<[^<>]*>", before) == re.findall("<[^<>]*>", after)
    assert re.sub(r"(?<!<)(?<!</)[^\W_](?![^<>]*>)", "x", before) == re.sub(
        r"(?<!<)(?<!</)[^\W_](?![^<>]*>)", "x", after
    )
