"""What the scripts of the pages do, run by node: a document of a few lines stands in for the browser."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from dragoman.documents.document import DocumentInfo
from dragoman.documents.table import read
from dragoman.documents.units import Unit
from dragoman.explanation.words import word_spans

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")

PAGES = resources.files("dragoman.pages")
DOCUMENT = Path(__file__).parent / "without_browser.js"
FACE = "\U0001f600"


def answered(program: str, given: Any = None) -> Any:
    """Return what a program answers: the body of a function, with ``without_browser.js``, ``pages`` and ``given``."""
    whole = f"""
        const {{ open, pass, find, FakeElement }} = require(process.argv[1]), pages = process.argv[2];
        const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
        (async () => {{ {program} }})().then((found) => console.log(JSON.stringify(found)));
    """
    with resources.as_file(PAGES) as folder:
        done = subprocess.run(
            ["node", "-e", whole, str(DOCUMENT), str(folder)],
            input=json.dumps({} if given is None else given), capture_output=True, text=True, timeout=30,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --- the page of the server -------------------------------------------------------------------------------------------

SERVE = """
    const settings = { pairs: [["en", "de"]], sources: ["en"], names: [],
      most: 1000, beam: 4, explained: 400, scale: {}, documents: {} };
    const shown = [], asked = [];
    const view = { speak() {}, redraw() {}, show: (trace) => shown.push(trace) };
    const $ = open(pages, ["explorer.js", "serve_texts.js", "serve.js"], {
      texts: { settings: JSON.stringify({ ...settings, ...given.settings }) },
      hash: given.hash, stubs: { explorer: () => view },
    });
    globalThis.fetch = async (route, request) => {
      asked.push({ route, ...JSON.parse(request.body) });
      return { ok: true, status: 200, headers: new Map(), json: async () => given.answer ?? {} };
    };
"""


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("ID;Text, deutsch\n1;Hallo Welt\n2;Ja, gern\n", ["ID", "Text, deutsch"]),
        ("a,b;c\r\n1,2\r\n3,4\r\n", ["a", "b;c"]),
        ('a;"b, c"\n1;"two\nlines, here"\n2;x\n', ["a", "b, c"]),
        ("# by hand, in May, 2026\nid;en\n1;the dog\n", ["id", "en"]),
        ("one | two, three\nfour | five\n", ["one ", " two, three"]),
        ("alone\nwords, here\n", ["alone"]),
        ("id,en\n", ["id", "en"]),
        ("", []),
    ],
    ids=["a comma in a heading", "a semicolon", "quoted", "comments", "a bar", "one column", "one row", "nothing"],
)
def test_the_separator_of_a_table_is_that_of_the_server(table: str, columns: list[str]) -> None:
    assert answered(f"{SERVE} return headings(given.table, false);", {"table": table}) == columns


NO_HEADINGS = 'k1;"The dog sees a cat.";short\nk2;"A cat sleeps.";text\n'
LONG_CELL = "k1;the dog sees the cat of the man\nk2;a cat\n"


@pytest.mark.parametrize("table", [NO_HEADINGS, LONG_CELL], ids=["with its end", "long"])
def test_a_table_without_headings_keeps_its_first_row(table: str) -> None:
    """A column is named by its number, if its first cell is a sentence: the server then translates that cell too."""
    program = f"{SERVE} return columnsOf(headings(given.table, false)).map((one) => [one.name, one.label()]);"
    (first, _), (second, label), *_ = answered(program, {"table": table})
    assert (first, second) == ("k1", "2")
    assert label.startswith("column 2: ")
    document = read(table.encode(), DocumentInfo(name="a.csv", columns=(second,)))
    assert sum(isinstance(part, Unit) for part in document.parts) == 2


def test_headings_name_their_columns() -> None:
    for heading in ("text", "Said, by whom", "the text (English)", "No.", "What?"):
        [column] = answered(f"{SERVE} return columnsOf([given.heading]);", {"heading": heading})
        assert column == {"name": heading}


TRANSLATED = """
    $("source").value = given.text;
    translate();
    await pass();
    const lines = $("line").children.map((one) => one.textContent);
    return { asked, lines, why: !$("why").hidden, whyNot: $("why-not").textContent };
"""


def answer(text: str, source: str = "en", target: str = "de") -> dict[str, Any]:
    return {"source": "en", "target": target, "translations": [{"text": text, "source": source, "notes": []}]}


def test_a_text_that_was_not_translated_has_no_attention_to_look_at() -> None:
    given = {"text": "Das ist gut.", "answer": answer("Das ist gut.", "de")}
    found = answered(SERVE + TRANSLATED, given)
    assert [one["route"] for one in found["asked"]] == ["v1/translate"]
    assert (found["why"], found["whyNot"]) == (False, "")
    for source, pairs in (("en", [["en", "de"]]), ("de", [["de", "de"]])):  # a server may rewrite one language
        given = {"text": "x", "answer": answer("y", source), "settings": {"pairs": pairs, "sources": [source]}}
        found = answered(SERVE + TRANSLATED, given)
        assert [(one["route"], one["source"]) for one in found["asked"][1:]] == [("v1/explain", source)]
        assert found["why"]


def test_lines_are_cut_between_characters_and_measured_in_them() -> None:
    text = f"{'x' * 79}{FACE}{'y' * 9}"
    found = answered(SERVE + TRANSLATED, {"text": f"{text}\nz", "answer": answer("a\nb")})
    assert found["lines"] == [text[:80], "z"]
    for n, is_explained in ((400, True), (401, False)):  # the server counts characters, of which each has two units
        found = answered(SERVE + TRANSLATED, {"text": FACE * n, "answer": answer("a")})
        assert (len(found["asked"]) == 2) == is_explained
        assert bool(found["whyNot"]) != is_explained


@pytest.mark.parametrize(
    ("link", "languages"),
    [
        ("#en/de/a%20dog", ("en", "de")),
        ("#eng/deu/a%20dog", ("en", "de")),
        ("#en_US/de-AT/a%20dog", ("en", "de")),
        ("#auto/pt/a%20dog", ("auto", "pt_BR")),
        ("#en/pt_PT/a%20dog", ("en", "pt_PT")),
        ("#en/zh_CN/a%20dog", ("en", "zh")),
    ],
)
def test_a_link_may_name_its_languages_in_another_form(link: str, languages: tuple[str, str]) -> None:
    pairs = [["en", "de"], ["en", "pt_BR"], ["en", "pt_PT"], ["en", "zh"], ["fr", "de"]]
    given = {"hash": link, "settings": {"pairs": pairs, "sources": ["en", "fr"]}}
    program = f'{SERVE} linked(); return [$("source").value, $("from").value, $("to").value, asked.length];'
    assert answered(program, given) == ["a dog", *languages, 1]


@pytest.mark.parametrize("link", ["#fr/de/text", "#en/zh_TW/text", "#en/de", "#x/y/text", "#", ""])
def test_a_link_of_other_languages_is_ignored(link: str) -> None:
    given = {"hash": link, "settings": {"pairs": [["en", "de"], ["en", "zh"]]}}
    assert answered(f'{SERVE} linked(); return [$("source").value, asked.length];', given) == ["", 0]


def test_a_code_with_two_underscores_has_a_name() -> None:
    assert "Taiwan" in answered(f'{SERVE} return nameOf("zh_Hant_TW");')  # the words differ from ICU to ICU


# --- the page of the API ----------------------------------------------------------------------------------------------

API = """
    const [state, shown] = [new FakeElement("output"), new FakeElement("pre")], answers = [];
    const form = Object.assign(new FakeElement("form"), {
      elements: { path: { value: "v1/languages" } }, closest: () => ({ dataset: { method: "GET" } }),
      querySelector: (name) => (name === "pre" ? shown : state),
    });
    FakeElement.prototype.querySelectorAll = () => [form];
    globalThis.fetch = () => new Promise((resolve, reject) => answers.push({ resolve, reject }));
    open(pages, ["api.js"]);
    form.send("submit");
    form.send("submit");
    answers[1].resolve({ status: 200, text: async () => "second" });
    await pass();
"""


@pytest.mark.parametrize(
    "late",
    ['resolve({ status: 200, text: async () => "first" })', 'reject(new Error("first"))'],
    ids=["answer", "error"],
)
def test_the_answer_of_an_earlier_request_replaces_no_later_one(late: str) -> None:
    text, state = answered(f"{API} answers[0].{late}; await pass(); return [shown.textContent, state.textContent];")
    assert (text, state[:9]) == ("second", "200 after")


# --- the translator in one file ---------------------------------------------------------------------------------------

INSIDE = """
    const root = new FakeElement("div"), kind = { shape: [2, 2, 3, 3] }, asked = [];
    const trace = { source: "a dog", translation: "ein hund", steps: [{ id: 5 }, { id: 3 }],
      src_lang: "en", tgt_lang: "de", views: [{ kinds: { cross: kind, encoder: kind, decoder: kind } }] };
    open(pages, ["explorer.js", "translator/inside_texts.js", "translator/inside.js"]);
    const model = { inside: async () => null, other: async () => null, rewrite: async () => null, ...MODEL };
    const laboratory = inside(root, model, { scale: { light: [""] }, signs: { light: [""] } });
    const writes = () => find(root, (one) => one.className === "in-writes").textContent;
    const change = () => {
      const box = find(root, (one) => one.type === "checkbox");
      box.checked = false;
      box.onchange();
    };
    laboratory.look({ trace, kind: "cross", layer: 0, head: 0, step: 0 });
"""


def test_a_changed_model_translates_even_if_its_first_answer_came_too_late() -> None:
    model = '{ rewrite: async (question) => (asked.push(question.text) > 1 ? { text: "der hund" } : null) }'
    program = f"const MODEL = {model}; {INSIDE} change(); await pass(); const first = writes(); await pass();"
    first, second, asked = answered(f"{program} return [first, writes(), asked];")
    assert first == "translating …"
    assert second == "The changed model writes: der hund"
    assert asked == ["a dog"] * 2


def test_another_sentence_ends_the_translation_of_the_former_one() -> None:
    """A hidden word belongs to its sentence: the next one has no change, so nothing is translated for it."""
    program = f"""
        const rows = [[1, 2]], scores = {{ products: rows, scores: rows, weights: rows, open: rows }};
        const head = {{ dK: 1, q: [[1]], k: [[1], [2]], v: [[1], [2]], ...scores, out: [[1]] }};
        const tokens = {{ src: ["a", "dog"], tgt: ["(start)"] }}, best = {{ before: [], after: [] }};
        const reply = {{ tokens, head, best, steps: [{{ chosen: "ein" }}] }};
        const MODEL = {{ inside: async () => reply, rewrite: async () => {{ asked.push(1); return null; }} }}; {INSIDE}
        appear();
        await pass();
        find(root, (one) => one.getAttribute("aria-pressed") === "false").onclick();
        await pass();
        laboratory.look({{ trace: {{ ...trace, source: "a cat" }}, kind: "cross", layer: 0, head: 0, step: 0 }});
        await pass();
        return [asked.length, writes()];
    """
    assert answered(program) == [1, ""]


def test_matrices_that_came_too_late_are_asked_for_again() -> None:
    model = '{ inside: async () => { if (asked.push(1) > 1) throw new Error("again"); return null; } }'
    program = f"const MODEL = {model}; {INSIDE} appear(); await pass();"
    found = answered(f'{program} return [asked.length, find(root, (one) => one.textContent === "again") !== null];')
    assert found == [2, True]


def test_what_a_changed_model_writes_stays_in_another_language_of_the_page() -> None:
    program = f"""
        const MODEL = {{ rewrite: async () => ({{ text: "der hund" }}) }}; {INSIDE}
        change();
        await pass();
        laboratory.speak("zh");
        await pass();
        return writes();
    """
    assert answered(program).endswith("der hund")


def test_the_choice_of_sentences_cuts_no_character() -> None:
    program = """
        const content = { src_lang: "zh_Hant_TW", tgt_lang: null, facts: { parameters: 9, dragoman: "1" },
          decode: { beamSize: 1 }, special: { eos: 3 } };
        const stub = { speak() {}, redraw() {}, look() {}, show() {} };
        const $ = open(pages, ["explorer.js", "translator/inside_texts.js", "translator/page.js"], {
          texts: { content: JSON.stringify(content), shell: "{}" }, stubs: { inside: () => stub, explorer: () => stub },
        });
        choose([given, "b"].map((text) => ({ text, ids: [], translation: "" })));
        return [$("sentence").firstChild.textContent, $("from").textContent];
    """
    text = f"{'x' * 79}{FACE}yy"
    shown, language = answered(program, text)
    assert shown == text[:80]
    assert "Taiwan" in language


SIGNS = (
    "a \U0001f44d\U0001f3fd!",  # a thumb and its skin tone
    "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7\U0001f1ea",  # two flags, and half of one
    "x \U0001f468\u200d\U0001f469\u200d\U0001f467 y",  # a family
    "\U0001f3f3\ufe0f\u200d\U0001f308 1\ufe0f\u20e3",
    "the dog's\U0001f600\U0001f600 (cafe\u0301)",
    "中文字\U0001f1e8\U0001f1f3。",
)


@pytest.mark.parametrize("text", SIGNS, ids=ascii)
@pytest.mark.parametrize("by_bytes", [True, False], ids=["bytes", "characters"])
def test_words_are_those_of_explain(text: str, by_bytes: bool) -> None:
    spelled = [bytes([byte]) for byte in text.encode()] if by_bytes else [one.encode() for one in text]
    program = 'open(pages, ["translator/trace.js"]); return wordSpans(given);'
    assert answered(program, [list(one) for one in spelled]) == [list(span) for span in word_spans(spelled)]
