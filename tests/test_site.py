"""The site: what stops its build, and what its pages are held to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.site import gather, marks, numbers, questions, reference, tables, translator
from docs.site.problems import BrokenDocsError
from dragoman.cli import app
from dragoman.config import Config

DOCS = gather.DOCS
ROOT = DOCS.parent
CHINESE = sorted((DOCS / "zh").rglob("*.md"))
ENGLISH, PLACED = gather.sources(), gather.places()


@pytest.fixture(scope="module")
def gathered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages of both languages, as Sphinx gets them."""
    found = {}
    for language in gather.LANGUAGES:
        found[language] = tmp_path_factory.mktemp(language)
        gather.Gatherer(language, found[language]).gather()
    return found


def test_each_of_the_questions_is_two_clicks_from_the_first_page(gathered: dict[str, Path]) -> None:
    assert len(questions.listed()) == 40
    assert len(questions.listed(questions.NEWCOMERS)) == 15
    assert len(questions.listed(questions.STUDENTS)) >= 10
    for language, source in gathered.items():
        assert questions.too_far(source) == []
        assert questions.without_answer(source, language) == []


@pytest.mark.parametrize(("readme", "pages"), [("README.md", DOCS), ("README.zh-CN.md", DOCS / "zh")])
def test_each_question_of_a_newcomer_is_two_clicks_from_a_readme(readme: str, pages: Path) -> None:
    def links(path: Path) -> set[Path]:
        found = re.findall(r"\]\(([^)#\s]+\.md)", path.read_text(encoding="utf-8"))
        return {page for link in found if (page := (path.parent / link).resolve()).is_file()}

    near = links(ROOT / readme)
    near |= {page for first in near for page in links(first)}
    for question in questions.listed(questions.NEWCOMERS):
        assert (pages / question.page).resolve() in near, question.question


def test_a_page_without_a_chinese_twin_says_so(gathered: dict[str, Path]) -> None:
    for where in ENGLISH:
        is_translated = (DOCS / "zh" / where).is_file()
        assert (gather.NOT_YET in (gathered["zh"] / where).read_text(encoding="utf-8")) != is_translated, where


def test_every_page_for_users_is_there_in_chinese() -> None:
    for_developers_or_looked_up = ("project/", "decisions/", "reference/")
    road = {where for where in ENGLISH if not where.startswith(for_developers_or_looked_up)}
    assert road - {path.relative_to(DOCS / "zh").as_posix() for path in CHINESE} == set()


@pytest.mark.parametrize("path", CHINESE, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_the_english_of_a_chinese_page_has_not_changed(path: Path) -> None:
    english = ENGLISH[path.relative_to(DOCS / "zh").as_posix()]
    head, _ = gather.front_matter(path.read_text(encoding="utf-8"))
    assert head.get("english") == gather.fingerprint(english), (
        f"{english.relative_to(ROOT)} has changed: bring {path.relative_to(ROOT)} up to date, then "
        f"python -m docs.site stamp {path.relative_to(ROOT)}"
    )


def told(path: Path) -> dict[str, object]:
    """What both languages of a page share: its headings by their levels, rows, code, links, numbers of results."""
    marked, _ = numbers.numbers_of(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    _, text = gather.front_matter(path.read_text(encoding="utf-8"))
    text = re.sub(r"^\[(简体中文|中文|English)\]\([^)]*\)\n\n", "", text, flags=re.MULTILINE)
    code = re.findall(r"^```\w+\n.*?^```$", text, flags=re.MULTILINE | re.DOTALL)
    if "course" in path.parts:  # its code has comments in the page's language
        code = [re.sub(r"[ \t]*#.*$", "", block, flags=re.MULTILINE) for block in code]
    prose = gather.FENCE.sub("", text)
    links = set()
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`(?!\])", "", prose)):
        if link.startswith("#"):
            continue
        if "://" not in link:
            full = (path.parent / link.partition("#")[0]).resolve().relative_to(ROOT).as_posix()
            link = PLACED.get(full, full.replace(".zh-CN.", "."))
        links.add(link)
    return {
        "headings": re.findall(r"^#+(?= )", prose, flags=re.MULTILINE),
        "rows": len(re.findall(r"^\|", prose, flags=re.MULTILINE)),
        "code": code,
        "links": links - {PLACED.get(path.relative_to(ROOT).as_posix())},
        "numbers": sorted((each.number, each.source) for each in marked),
    }


@pytest.mark.parametrize("path", CHINESE, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_a_chinese_page_has_the_parts_links_and_numbers_of_the_english_one(path: Path) -> None:
    english, chinese = told(ENGLISH[path.relative_to(DOCS / "zh").as_posix()]), told(path)
    for part, found in english.items():
        assert chinese[part] == found, part


def test_a_newcomer_reads_little_before_the_first_own_translation() -> None:
    """From the top of each page on the way to where a reader may stop."""
    ways = {
        "index.md": "(start/index.md)",
        "start/index.md": "3.",
        "start/install.md": "By hand,",
        "start/first-translator.md": "| dragoman translate",
    }
    words = 0
    for name, end in ways.items():
        text = (DOCS / name).read_text(encoding="utf-8")
        words += len(text[: text.index(end)].split())
    assert words <= 250


def test_numbers_are_those_of_their_files() -> None:
    marked = 0
    for path in [*DOCS.rglob("*.md"), *ROOT.glob("README*.md")]:
        if "_build" not in path.relative_to(ROOT).parts:
            text = path.read_text(encoding="utf-8")
            page = path.relative_to(ROOT).as_posix()
            assert numbers.renewed(page, text)[1] == []
            marked += len(numbers.numbers_of(page, text)[0])
    assert marked > 380
    pages = {
        path.relative_to(ROOT / "docs/site/numbers").as_posix() for path in numbers.file_of("").parent.rglob("*.txt")
    }
    assert all((ROOT / page.removesuffix(".txt")).is_file() for page in pages)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a page whose numbers are from files in a folder of the test."""
    monkeypatch.setattr(numbers, "file_of", lambda page: tmp_path / f"{page}.txt")
    monkeypatch.setattr(numbers, "ROOT", tmp_path)
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    return "a.md"


BLEU = "multi30k.json:figures/scores/BLEU/mean as .1f"


def test_a_number_that_is_wrong_is_named_and_written_again(page: str) -> None:
    numbers.file_of(page).write_text(f"BLEU {{}}.\n    {BLEU}\n", encoding="utf-8")
    text, wrong = numbers.renewed(page, "one\nBLEU 38.2.\n")
    assert text == "one\nBLEU 39.1.\n"
    assert wrong == ["a.md:2: 38.2, but multi30k.json:figures/scores/BLEU/mean is 39.1"]
    assert numbers.without_numbers(page, text) == "one\nBLEU .\n"


def test_a_comment_behind_a_number_is_moved_out_of_the_page(page: str) -> None:
    rows = "".join(f"| {name} | 39.1<!-- {BLEU} --> |\n| greedy | 38.2<!-- {BLEU} --> |\n" for name in ("a", "b"))
    marked = f"Of 1,000 lines {'many ' * 20}39.1<!-- {BLEU} -->% are right.\n{rows}`1.0<!-- {BLEU} -->`\n"
    plain, entries = numbers.moved(page, marked)
    assert plain == re.sub(r"(?<=[12])<!-- [^>]*-->", "", marked)
    assert [entry.text for entry in entries] == [
        "many many many many {}% a", "| a | {} |\n| greedy | {} |", "| b | {} |\n| greedy | {} |",
    ]  # fmt: skip
    numbers.write_entries(page, entries)
    assert numbers.entries_of(page) == entries
    found, problems = numbers.numbers_of(page, plain)
    assert ([each.number for each in found], problems) == (["39.1", "39.1", "38.2", "39.1", "38.2"], [])
    assert numbers.moved(page, plain) == (plain, entries)
    changed = plain.replace("| a | 39.1", f"| c | 39.1<!-- {BLEU} -->")  # by somebody who knew only comments
    _, entries = numbers.moved(page, changed)
    assert [entry.text for entry in entries] == [
        "many many many many {}% a",
        "| c | {} |",
        "| b | {} |\n| greedy | {} |",
    ]


def test_a_part_of_a_page_that_is_gone_or_there_twice_is_named(page: str) -> None:
    numbers.file_of(page).write_text(f"BLEU {{}}.\n    {BLEU}\n", encoding="utf-8")
    for text in ("chrF 39.1.\n", "BLEU 39.1. BLEU 39.1.\n"):
        [wrong] = numbers.renewed(page, text)[1]
        assert wrong.startswith("a.md: 'BLEU {}.' must be there once, with 1 numbers")


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("none.json:figures as .1f", "none.json has no figures"),
        ("multi30k.json:figures/ROUGE as .1f", "multi30k.json has no figures/ROUGE"),
    ],
)
def test_a_result_that_is_missing_is_named(mark: str, said: str, page: str) -> None:
    numbers.file_of(page).write_text(f"of {{}}\n    {mark}\n", encoding="utf-8")
    [wrong] = numbers.renewed(page, "of 1.0\n")[1]
    assert wrong.startswith(f"a.md:1: {said}")


def test_a_mark_that_is_left_in_a_page_is_named() -> None:
    [wrong] = numbers.renewed("a.md", "of <!-- multi30k.json:figures as .1f -->")[1]
    assert wrong.startswith("a.md:1: a mark in the page; move it with python -m docs.site numbers")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# A\n\n[b](nowhere.md)\n", "docs/how-to/index.md:3: nowhere.md leads nowhere"),
        ("# A\n\n<!-- made: nothing -->\n", "docs/how-to/index.md:3: nothing makes nothing"),
    ],
)
def test_what_a_page_names_and_is_not_there_stops_the_build(tmp_path: Path, text: str, said: str) -> None:
    gatherer = gather.Gatherer("en", tmp_path)
    where, name = "how-to/index.md", "docs/how-to/index.md"
    gatherer.check_parts(name, text)
    gatherer.turn_links(name, where, text)
    assert len(gatherer.problems) == 1
    assert gatherer.problems[0].startswith(said)


def test_lines_in_chinese_are_joined() -> None:
    numbers_first = "一行，\n6,240 个\n\n两步：\n1. 一\n2. 二\n"
    assert gather.joined(numbers_first) == "一行，6,240 个\n\n两步：\n1. 一\n2. 二\n"
    text = (
        "一行，\n又一行\n又一行，\n`code`\n又一行\n\n- 一项\n  接着\n- 两项\n\n| 表 |\n|---|\n\n```text\n一\n二\n```\n"
    )
    assert gather.joined(text) == (
        "一行，又一行又一行，`code`\n又一行\n\n- 一项接着\n- 两项\n\n| 表 |\n|---|\n\n```text\n一\n二\n```\n"
    )


PLACES = (
    "[`attend`](../../src/dragoman/model/attention.py) [MASKS](../../src/dragoman/model/masks.py) `return causal_mask(`"
)


def test_a_link_to_code_leads_to_its_line(tmp_path: Path) -> None:
    gatherer = gather.Gatherer("en", tmp_path)
    text = gatherer.link_places("docs/understand/paper.md", "understand/paper.md", PLACES)
    lines = re.findall(r'href="\.\./files/(src/[\w/]+\.py)\.html#L-(\d+)"', text)
    assert [name for name, _ in lines] == ["src/dragoman/model/attention.py", "src/dragoman/model/masks.py"]
    for (name, number), code in zip(lines, ("def attend(", "return causal_mask("), strict=True):
        assert code in (ROOT / name).read_text(encoding="utf-8").split("\n")[int(number) - 1]
        assert f'id="L-{number}"' in gather.listing(ROOT / name)
    assert "return causal_mask(</code>" in text
    assert gatherer.problems == []


def test_code_that_is_not_there_any_more_stops_the_build(tmp_path: Path) -> None:
    gatherer = gather.Gatherer("en", tmp_path)
    gatherer.link_places("docs/understand/paper.md", "understand/paper.md", PLACES.replace("attend`", "attended`"))
    [problem] = gatherer.problems
    assert problem.endswith("src/dragoman/model/attention.py has no line with attended")


def test_every_box_of_a_drawing_leads_to_a_mark_of_its_page() -> None:
    for page in (DOCS / "understand/paper.md", DOCS / "zh/understand/paper.md"):
        text = page.read_text(encoding="utf-8")
        drawn = marks.DRAWING.findall(text)
        assert len(drawn) == 2
        for shown, name in drawn:
            drawing = (page.parent / name).read_text(encoding="utf-8")
            laid = marks.with_links(f"![{shown}]({name})", drawing)
            leads = re.findall(r'class="box" style="([^"]+)" href="#([\w-]+)" aria-label="[^"]+"', laid)
            assert len(leads) == drawing.count("<a href=") > 5
            assert {mark for _, mark in leads} <= marks.marks_of(page)
            assert all(0 < float(part) < 100 for style, _ in leads for part in re.findall(r"([\d.]+)%", style))


def test_the_translator_of_the_site_learns_from_short_sentences(tmp_path: Path) -> None:
    files = translator.short_pairs(tmp_path, "train", "de", 30, "train", 1)
    src, tgt = (path.read_text(encoding="utf-8").split("\n")[:-1] for path in files.values())
    assert len(src) == len(tgt) == 30
    assert max(len(line.split()) for line in src) <= translator.LONGEST
    Config.from_mapping({**translator.RECIPE, "data": {**translator.RECIPE["data"], "tgt_lang": "de", "train": files}})


def test_a_setting_without_a_description_stops_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    name, field = next(tables.each_setting())
    monkeypatch.setattr(field, "description", None)
    with pytest.raises(BrokenDocsError, match=f"{name} has no description"):
        tables.settings()


def examples() -> list[tuple[str, str]]:
    """Each command line of dragoman that the documentation shows, with its place."""
    found = []
    pages = [path for folder in ("start", "how-to", "reference", "zh") for path in (DOCS / folder).rglob("*.md")]
    for path in [*pages, ROOT / "README.md", *tables.RECORDED.glob("*.txt")]:
        text = path.read_text(encoding="utf-8")
        blocks = [text] if path.suffix == ".txt" else re.findall(r"^```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        for block in blocks:
            for line in re.sub(r"\\\n\s*", "", block).split("\n"):
                if command := re.search(r"(?:^|\$ |\| |-m )dragoman ([a-z]+ .*)$", line):
                    found.append((path.relative_to(ROOT).as_posix(), command[1]))
    return found


def test_commands_that_are_shown_have_only_options_that_exist() -> None:
    commands = tables.each_command()
    known = {
        name: {option for each in command.params for option in each.opts} | {"--help", "-h"}
        for name, command in commands.items()
    }
    shown = examples()
    assert {command.split()[0] for _, command in shown} >= known.keys() - {"demo"}
    for page, command in shown:
        name = command.split()[0]
        assert name in known, f"{page}: dragoman {command}: there is no command {name}"
        for option in re.findall(r"(?<=\s)--?[a-z][\w-]*", re.sub(r'"[^"]*"', "", command)):
            assert option in {flag.strip() for flag in known[name]}, f"{page}: dragoman {command}: no option {option}"


def test_parts_that_the_code_decides_stand_in_the_pages_as_the_code_has_them() -> None:
    assert app is not None
    there = set()
    for path in reference.pages():
        text = path.read_text(encoding="utf-8")
        assert reference.renewed(text) == text, f"{path.relative_to(ROOT)} is out of date: {reference.COMMAND}"
        there |= set(re.findall(r"^<!-- made: (\w+) -->\n(?:.*\n){6,}?<!-- end of \1 -->$", text, flags=re.MULTILINE))
    assert there == tables.PARTS.keys()


def test_a_part_that_is_out_of_date_is_named_and_written_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(tables.PARTS, "settings", lambda: "| a table |\n| of now |")
    page = "# A\n\n<!-- made: settings -->\n{}\nThe end.\n"
    now = page.format("\n| a table |\n| of now |\n\n<!-- end of settings -->\n")
    for older in ("", "\n| of then |\n\n<!-- end of settings -->\n"):
        gatherer = gather.Gatherer("en", tmp_path)
        gatherer.check_parts("docs/a.md", page.format(older))
        [problem] = gatherer.problems
        assert problem == f"docs/a.md: a part that is made from the code is out of date: {reference.COMMAND}"
        assert reference.renewed(page.format(older)) == now
        assert reference.without_parts(page.format(older)) == page.format("")
    assert reference.renewed(now) == now


def test_what_the_theme_says_is_said_in_chinese() -> None:
    furo = pytest.importorskip("furo")
    catalogue = (DOCS / "site/locale/zh_CN/LC_MESSAGES/sphinx.po").read_text(encoding="utf-8")
    ours = set(re.findall(r'^msgid "(.+)"\nmsgstr ".+"$', catalogue, flags=re.MULTILINE))
    said = set()
    for name in ("page.html", "base.html", "search.html", "sidebar/search.html"):
        text = (Path(furo.__file__).parent / "theme/furo" / name).read_text(encoding="utf-8")
        said |= set(re.findall(r"""_\(\s*["']([^"']+)["']\s*\)""", text))
        blocks = re.findall(r"{%-?\s*trans\s*-?%}(.*?){%-?\s*endtrans", text, re.DOTALL)
        said |= {" ".join(each.split()) for each in blocks if "<a" not in each}
    assert {each for each in said if each != "Made with"} - ours == set()
    assert len(said) > 8
