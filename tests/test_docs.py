"""The documentation is true: its commands run, its links and names exist, its tables say what the code says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
import yaml

import dragoman
from docs.site import modules, tables
from docs.site.marks import marks_of
from docs.site.reference import without_parts
from dragoman import reference
from dragoman.cli import app
from dragoman.cli.commands import COMMANDS, load
from dragoman.cli.habits import RENAMED
from dragoman.config import PRESETS, Config, fields_of, section_in
from dragoman.data import phrasebook
from dragoman.training import budget
from dragoman.training.defaults import choose_sizes
from dragoman.training.folder import RESUMABLE
from limits import LONG_S
from processes import start_code

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = {
    path.relative_to(DOCS).as_posix(): without_parts(path.read_text(encoding="utf-8"))
    for folder in ("start", "how-to", "reference")
    for path in sorted((DOCS / folder).glob("*.md"))
}
"""What a user reads of the documentation, without what is made from the code."""
GUIDE = "\n".join(PAGES.values())
ARCHITECTURE = (DOCS / "project/architecture.md").read_text(encoding="utf-8")
READMES = ["README.md", "README.zh-CN.md"]
TWO_LANGUAGES = {
    "README.md": "README.zh-CN.md",
    "docs/features.md": "docs/zh/features.md",
    "docs/results/index.md": "docs/zh/results/index.md",
}
"""Pages that say the same in English and in Chinese."""

TINY = [
    "train.max_steps=40", "train.warmup_steps=5", "train.validate_every=40", "train.save_every=20", "train.lr=1e-2",
    "train.batch_tokens=512", "model.d_model=32", "model.n_heads=2", "model.d_ff=64", "model.n_encoder_layers=1",
    "model.n_decoder_layers=1", "data.tokenizer.vocab_size=400", "decode.max_extra_tokens=5",
]  # fmt: skip
"""What the README's trainings are made small with."""

SMALL_TRAININGS = f"""
import dragoman
_train = dragoman.train
def _small(*args, overrides=(), **given):
    return _train(*args, overrides=[*overrides, *{TINY!r}], **(given | dict(quiet=True)))
dragoman.train = _small
"""


def our_files() -> list[Path]:
    """All files of the project, committed or not."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.split("\n") if name]
    else:
        made = {".venv", ".bench", "runs", "build", "dist"}
        paths = [path for path in ROOT.rglob("*") if not made & set(path.relative_to(ROOT).parts)]
    return sorted(path for path in paths if path.is_file())


PROSE = [path for path in our_files() if path.suffix == ".md"]


def blocks(text: str, *languages: str) -> list[str]:
    """The contents of fenced code blocks in these languages."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [body for language, body in found if language in languages]


def commands(text: str) -> list[str]:
    """The lines of console and bash blocks, prompts taken off."""
    return [line.removeprefix("$ ") for block in blocks(text, "console", "bash") for line in block.splitlines() if line]


# --- the commands -----------------------------------------------------------------------------------------------------


class Workplace(NamedTuple):
    """A folder with small corpora under the README's names, and what runs there."""

    folder: Path

    def run(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command in it, ``dragoman`` being ours; fails the test if it fails."""
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        environment["OMP_NUM_THREADS"] = "1"
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=LONG_S, **options
        )
        assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def run_python(self, code: str) -> str:
        """Run a program in it, in a process of its own, a warning being an error; what it prints."""
        process = start_code(f"import warnings; warnings.simplefilter('error')\n{code}", cwd=self.folder)
        out, err = process.communicate()
        assert process.returncode == 0, f"exit {process.returncode}\n{out.decode()}\n{err.decode()}"
        assert b"Traceback" not in err
        return out.decode()


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """Corpora by the names that the documentation uses, and the commands of the README run on them."""
    here = Workplace(tmp_path_factory.mktemp("readme"))
    (here.folder / ".venv").mkdir()
    (here.folder / ".venv/bin").symlink_to(Path(sys.executable).parent)  # as of make install
    for name, split, count in (("train", "train", 300), ("test", "held_out", 20)):
        phrasebook.write(count, here.folder / f"{name}.en", here.folder / f"{name}.de", split=split)
    for command in commands((ROOT / "README.md").read_text(encoding="utf-8")):
        if command.startswith(("make ", "source ")):
            continue
        if command.startswith("dragoman train"):
            command += "".join(f" --set {setting}" for setting in TINY)
        here.run(["bash", "-c", command])
    return here


def test_the_commands_of_the_readme_run(workplace: Workplace) -> None:
    n_lines = len((workplace.folder / "test.en").read_text(encoding="utf-8").splitlines())
    assert len((workplace.folder / "test.hyp.de").read_text(encoding="utf-8").splitlines()) == n_lines
    assert "<html" in (workplace.folder / "explanation.html").read_text(encoding="utf-8")


def test_the_readme_is_read_in_two_screens() -> None:
    assert len(re.sub(r"<!--.*?-->", "", (ROOT / "README.md").read_text(encoding="utf-8")).split()) <= 900


@pytest.mark.parametrize("page", TWO_LANGUAGES)
def test_a_page_in_two_languages_has_the_same_commands_links_and_figures(page: str) -> None:
    names = (page, TWO_LANGUAGES[page])
    texts = [re.sub(r"^---\n.*?\n---\n", "", (ROOT / name).read_text("utf-8"), flags=re.DOTALL) for name in names]
    one, other = (blocks(text, "console", "bash", "python", "text") for text in texts)
    assert one == other
    one, other = (
        {in_english(name, link) for link in links(text)} - {page} for name, text in zip(names, texts, strict=True)
    )
    assert one == other  # each to pages of its own language, where there are such
    one, other = (sorted(set(re.findall(r"FIGURE:\w+|\d[\d.,]*\d", text))) for text in texts)
    assert one == other  # the same figures


def in_english(page: str, link: str) -> str:
    """Where a link of a page leads, of a page in Chinese its English twin; a heading has another anchor there."""
    if "://" in link:
        return link
    target = os.path.normpath(Path(page).parent / link.partition("#")[0])
    english = target.replace(".zh-CN.", ".").replace("docs/zh/", "docs/")
    return english if (ROOT / english).exists() else english.replace("/index.md", "/README.md")


def test_no_page_is_too_long_to_be_read() -> None:
    """Beyond 1,500 words are only pages that one looks things up in."""
    looked_up = (
        "reference/",
        "results/performance.md",
        "zh/results/performance.md",
        "project/",
        "decisions/",
        "_build/",
    )
    for path in DOCS.rglob("*.md"):
        name = path.relative_to(DOCS).as_posix()
        if not name.startswith(looked_up):
            assert len(path.read_text(encoding="utf-8").split()) <= 1500, name


def test_the_guides_commands_are_the_readmes() -> None:
    assert set(commands(GUIDE)) <= set(commands((ROOT / "README.md").read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", ["README.md", *(f"docs/{page}" for page in PAGES if blocks(PAGES[page], "python"))])
def test_the_python_of_a_page_runs(workplace: Workplace, path: str) -> None:
    found = blocks((ROOT / path).read_text(encoding="utf-8"), "python")
    workplace.run_python(SMALL_TRAININGS + "\n".join(found))


CATALOGUE = """
msgid "NAME"
msgstr "目录"

msgid ""
"in two "
"parts"
msgstr "两部分"

msgid "NAME"
msgstr "目录"

#, fuzzy
msgid "fuzzy"
msgstr "模糊"

msgid "open"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d 个文件"

msgid "two\\nlines"
msgstr "两\\n行"

#~ msgid "gone"
#~ msgstr "没有了"
"""


def test_the_recipe_makes_text_files_of_message_catalogues(tmp_path: Path) -> None:
    (tmp_path / "python-docs-zh-cn").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"python-docs-zh-cn/{name}.po").write_text(CATALOGUE.replace("NAME", name), encoding="utf-8")
    (recipe,) = blocks((DOCS / "recipes/index.md").read_text(encoding="utf-8"), "python")
    Workplace(tmp_path).run_python(recipe)
    made = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir() if path.is_file()}
    assert made == {
        "manual-dev.en": "a\nin two parts\n", "manual-dev.zh": "目录\n两部分\n",
        "manual-train.en": "b\nin two parts\n", "manual-train.zh": "目录\n两部分\n",
    }  # fmt: skip


@pytest.mark.parametrize("block", blocks(GUIDE, "yaml"))
def test_configurations_in_the_guide_are_valid(tmp_path: Path, block: str) -> None:
    (tmp_path / "my.yaml").write_text(block, encoding="utf-8")
    Config.from_yaml(tmp_path / "my.yaml")


def test_n_lines_in_are_n_lines_out_and_blank_ones_stay_blank(workplace: Workplace) -> None:
    text = "We sing.\n\nWe\u2028sing.\r\n   \n\x0bWe sing.\r\nWe sing."
    done = workplace.run(["dragoman", "translate", "runs/first"], input=text)
    out = done.stdout.split("\n")
    assert len(out) == 7  # six lines, each ended by LF
    assert out[1] == out[3] == out[6] == ""
    assert out[0] == out[5] != ""


def test_nothing_is_pickled(workplace: Workplace) -> None:
    """A promise of the README: of the source, and of every file that a run leaves."""
    forbidden = re.compile(r"import (pickle|shelve|marshal)|torch\.(load|save)\(|np\.(load|save)\w*\(|allow_pickle")
    allowed = {  # what others have written, imported as numbers alone
        "huggingface": 'torch.load(path, map_location="cpu", weights_only=True)',
        "marian": "np.load(path, allow_pickle=False)",
    }
    for path in (ROOT / "src").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert not forbidden.search(source.replace(allowed.get(path.parent.name, "\0"), "")), path
    known = {
        ".yaml",
        ".json",
        ".jsonl",
        ".txt",
        ".safetensors",
        ".spm",
        ".ids",
        ".hashes",
        ".offsets",
        ".text",
        ".ends",
    }
    files = [path for path in (workplace.folder / "runs").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= known


def test_the_run_folder_is_as_the_guide_draws_it(workplace: Workplace) -> None:
    section = PAGES["reference/files.md"]
    for path in (workplace.folder / "runs/first").iterdir():
        assert re.search(rf"^  {re.escape(path.name)}\b", section, flags=re.MULTILINE), path.name
    for path in (workplace.folder / "runs/first/bundle").iterdir():
        assert path.name in section or f"*{path.suffix}" in section, path.name


# --- names and tables -------------------------------------------------------------------------------------------------


def settings(section: type[Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every setting below ``section`` by its full name, with its default as YAML would write it."""
    for name, field in fields_of(section).items():
        default, below = field.default, section_in(field.annotation)
        if below is not None:
            yield from settings(below, f"{prefix}{name}.")
        elif field.is_required():
            yield prefix + name, "required"
        elif default is None or isinstance(default, bool):
            yield prefix + name, "null" if default is None else str(default).lower()
        else:
            yield prefix + name, str(list(default) if isinstance(default, tuple) else default)


SETTINGS = dict(settings(Config))


def test_every_setting_has_a_description_and_stands_on_its_page() -> None:
    page = tables.settings()
    for name, default in SETTINGS.items():
        row = re.search(
            rf"^\| `{re.escape(name)}` \| `([^`]*)` \| (.+?) \| (.+?) \| (yes|no) \|$", page, flags=re.MULTILINE
        )
        assert row, name
        assert default in (row[1], str(yaml.safe_load(row[1]))), name
        assert (row[4] == "yes") == (name.removeprefix("train.") in RESUMABLE or name.startswith("decode.")), name


def test_every_setting_that_the_documentation_names_exists() -> None:
    others = {"data.train.src", "data.train.tgt", "data.valid.src", "data.valid.tgt", "model.preset", "data.tokenizer"}
    others |= {"data.train.trees", "data.valid.trees"}  # of parsers; kept as src and tgt
    others |= {"model.safetensors", "model.bin", "train.de.gz"}  # files that look like settings
    pattern = re.compile(r"`(?:--set )?((?:model|data|train|decode)\.[a-z_.]{3,})(?:=[^`]*)?`")
    for path in PROSE:
        assert set(pattern.findall(path.read_text(encoding="utf-8"))) <= {*SETTINGS, *others}, path


def test_presets_and_chosen_sizes_are_as_the_guide_says() -> None:
    page = tables.settings()
    for name, sizes in PRESETS.items():
        row = f"| `{name}` | {sizes['d_model']} | {sizes['d_ff']} | {sizes['n_heads']} | "
        row += f"{sizes['n_encoder_layers']} + {sizes['n_decoder_layers']} | {sizes.get('dropout', 0.1)} | "
        config = dragoman.ModelConfig(preset=name, src_vocab_size=37_000, tgt_vocab_size=37_000)
        n_parameters = sum(_size(shape) for shape in reference.parameter_shapes(config.model_dump()).values())
        assert f"{row}{n_parameters:,} |" in page
    for n_pairs, what in ((9_999, "fewer than 10,000"), (99_999, "fewer than 100,000"), (499_999, "fewer than 500,000"),
                          (999_999, "fewer than 1,000,000"), (1_000_000, "more")):  # fmt: skip
        chosen = choose_sizes(n_pairs)
        preset, dropout = chosen["model"]["preset"], chosen["model"]["dropout"]
        vocab_size = chosen["data"]["tokenizer"]["vocab_size"]
        assert f"| {what} | {preset} | {vocab_size:,} | {dropout} |" in GUIDE
    for d_model, layers, most in budget.SIZES:
        rate = f"{budget.RATE_TIMES_WIDTH / d_model:.1e}".replace("e-0", "e-").replace(".0e", "e")
        assert f"| {d_model} | {layers} + {layers} | {most:,} | {rate} |" in GUIDE


def _size(shape: tuple[int, ...]) -> int:
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def test_the_options_of_the_commands_are_those_of_the_documentation() -> None:
    context = typer.Context(typer.main.get_command(app))
    known = {
        option
        for name in COMMANDS
        for parameter in load(name).params
        for option in parameter.opts
        if option.startswith("--")
    }
    known |= {option for parameter in context.command.params for option in parameter.opts if option.startswith("--")}
    texts = [GUIDE, tables.commands()]  # the second is the reference, made from the code
    texts += [
        (ROOT / name).read_text(encoding="utf-8") for name in (*READMES, "docs/features.md", "docs/zh/features.md")
    ]
    named = {option for text in texts for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)}
    of_torchrun = {"--nnodes", "--nproc-per-node", "--rdzv-backend", "--rdzv-endpoint", "--rdzv-id", "--max-restarts"}
    of_others = {"--head", "--index" + "-url", "--logdir", "--data"}  # Ray, pip, TensorBoard, benchmarks
    of_others |= {former for names in RENAMED.values() for former in names} - known
    assert named - of_torchrun - of_others - {"--help"} == known - {"--help"}


def test_each_public_name_has_an_example_that_runs(workplace: Workplace) -> None:
    examples = sorted((DOCS / "reference/examples").glob("*.py"), key=lambda path: path.stem)
    assert [path.stem for path in examples] == sorted(dragoman.__all__)
    code = ["import runpy, pathlib", SMALL_TRAININGS, 'if not pathlib.Path("runs/second").exists():']
    code.append('    dragoman.train(src="train.en", tgt="train.de", out="runs/second")')
    code.append("import dragoman.distillation.distill as distillation")
    steps = [setting for setting in TINY if setting.startswith("train.")]
    code.append(f"train, distillation.train = distillation.train, lambda *args, overrides=(), **given: "
                f"train(*args, overrides=[*overrides, *{steps}], **given)")  # fmt: skip
    for path in examples:
        source = path.read_text(encoding="utf-8")
        assert re.search(rf"\b{path.stem}\b", source), path
        if path.stem != "translate_folder":  # needs Ray: tests/bulk
            code.append(f"runpy.run_path({str(path)!r})")
    workplace.run_python("\n".join(code))


def test_make_targets_that_are_named_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    for path in PROSE:
        text = path.read_text(encoding="utf-8")
        named = re.findall(r"`make ([a-z-]+)", text) + [c.split()[1] for c in commands(text) if c.startswith("make ")]
        assert set(named) <= targets, path


def test_measurements_are_those_that_are_described() -> None:
    text = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    folders = {name: ROOT / "benchmarks" / name.rstrip(".") for name in ("", "questions.", "ready.", "real_documents.")}
    runnable = {
        f"{before}{path.stem}"
        for before, folder in folders.items() for path in folder.glob("*.py")
        if "\ndef main(" in path.read_text(encoding="utf-8")
    }  # fmt: skip
    assert set(re.findall(r"-m benchmarks\.((?:(?:questions|ready|real_documents)\.)?\w+)", text)) == runnable - {
        "__main__"
    }


def test_questions_that_were_asked_once_are_found_by_the_commands_of_their_results() -> None:
    text = (ROOT / "benchmarks/results/README.md").read_text(encoding="utf-8")
    renamed = set(re.findall(r"`(\w+)`", next(row for row in text.split("\n") if "benchmarks.questions.NAME" in row)))
    assert renamed == {path.stem for path in (ROOT / "benchmarks/questions").glob("*.py")} - {"__init__"}


def test_the_tree_of_modules_is_made_from_their_first_lines() -> None:
    assert modules.with_tree(ARCHITECTURE) == ARCHITECTURE, "write it again: python -m docs.site modules"


def test_where_to_change_what_names_files_and_what_is_in_them() -> None:
    package, section = ROOT / "src/dragoman", ARCHITECTURE.split("## Where to change what")[1].split("\n## ")[0]
    found = 0
    for row in re.findall(r"^\| (?!to add|---)(.+) \|$", section, flags=re.MULTILINE):
        paths = [package / name for name in re.findall(r"`([a-z_0-9/]+(?:\.py|/))`", row.split(" | ")[1])]
        assert paths, row
        assert all(path.exists() for path in paths), row
        code = "".join(path.read_text(encoding="utf-8") for path in paths if path.is_file())
        for name in re.findall(r"`(?:Translator\.)?([A-Za-z_]+)`", row.split(" | ")[1]):
            assert re.search(rf"^ *(?:def |class )?{name}\b", code, flags=re.MULTILINE), row
        found += 1
    assert found > 12


def test_the_levels_are_those_that_import_linter_checks() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    layers = next(found["layers"] for found in tools["importlinter"]["contracts"] if found["type"] == "layers")
    section = ARCHITECTURE[ARCHITECTURE.index("## Levels") :]
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", section, flags=re.MULTILINE)
    found = [set(re.findall(r"`(\w+)`", row)) for _, row in rows]
    assert found == [set(re.findall(r"dragoman\.(\w+)", layer)) for layer in layers]
    assert [int(level) for level, _ in rows] == list(reversed(range(len(layers))))


# --- the equations ----------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """One row of docs/understand/equations.md."""

    what: str
    functions: list[str]
    code: list[tuple[str, str]]  # file, line
    tests: list[str]


def rows() -> list[Row]:
    found = []
    for line in (DOCS / "understand/equations.md").read_text(encoding="utf-8").split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 4 and cells[1] not in ("reference", "---") and not set(line) <= set("|-"):
            what, functions, code, tests = cells
            lines = re.findall(r"\[[^]]+\]\(([^)]+)\) `([^`]+)`", code)
            found.append(Row(what, re.findall(r"`(\w+)`", functions), lines, re.findall(r"`([^`]+)`", tests)))
    return found


def test_there_are_equations() -> None:
    assert len(rows()) > 30
    assert all(row.code and row.tests for row in rows())


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.what[:30])
def test_what_an_equation_points_to_exists(row: Row) -> None:
    for name in row.functions:
        assert callable(getattr(reference, name))
    for path, line in row.code:
        assert line in (DOCS / "understand" / path).read_text(encoding="utf-8"), f"{path} has no line {line}"
    for test in row.tests:
        path, name = test.split("::")
        assert f"\ndef {name}(" in (ROOT / path).read_text(encoding="utf-8"), test


def test_every_backward_pass_has_its_function() -> None:
    names = [name for name in dir(reference) if name.endswith("_backward")]
    assert len(names) > 10
    assert all(hasattr(reference, name.removesuffix("_backward")) for name in names)


# --- links and words --------------------------------------------------------------------------------------------------


def links(text: str) -> list[str]:
    """The targets of links and images, code blocks left out."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"`[^`\n]*`(?!\])", "", prose)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def anchors(path: Path) -> set[str]:
    """What headings may be linked to by, and marks."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    named = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return named | marks_of(path)


@pytest.mark.parametrize("path", PROSE, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_somewhere(path: Path) -> None:
    for link in links(path.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(target), link


def test_the_project_speaks_of_itself_alone() -> None:
    everywhere = ["../" + "shared", "/" + "work/", "index" + "-url"]
    in_prose = re.compile(r"\b" + "sess" + r"ions?\b|\bissue #?\d", flags=re.IGNORECASE)
    pytorchs = "index" + "-url https://download.pytorch.org/whl/cpu"  # as its own page prints it
    for path in our_files():
        try:
            text = path.read_text(encoding="utf-8").replace(pytorchs, "")
        except UnicodeDecodeError:
            continue
        for word in everywhere:
            assert word not in text, f"{path.relative_to(ROOT)} says {word}"
        assert not re.search("^(?:<{7}|>{7}) ", text, re.M), f"{path.relative_to(ROOT)} holds both sides of a merge"
        if path.suffix in (".md", ".yaml", ".yml", ".toml"):
            assert not in_prose.search(text), f"{path.relative_to(ROOT)} says {in_prose.search(text)}"


def test_torch_installed_by_hand_is_one_that_dragoman_keeps() -> None:
    """A newer one would be replaced from the usual index: by the CUDA build, of 5 GB."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (bound,) = (one.rpartition(",")[2] for one in project["dependencies"] if one.startswith("torch"))
    pages = ["README.md", "README.zh-CN.md", "docs/start/install.md", "docs/zh/start/install.md"]
    for name in (*pages, "deploy/dragoman.service"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert re.findall(r"pip install (\S*torch\S*)", text) == [f'"torch{bound}"'], name


# --- the examples -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_examples_run(tmp_path: Path, name: str) -> None:
    said = Workplace(tmp_path).run_python((ROOT / "examples" / name).read_text(encoding="utf-8"))
    assert said.strip()
    if name == "numpy_beside_torch.py":
        differences = [float(number) for number in re.findall(r"\d\.\de[-+]\d+", said)]
        assert len(differences) == 8
        assert max(differences) < 1e-10


NOTEBOOKS = ("first_hour.ipynb", "first_hour.zh-CN.ipynb")


def cells(name: str) -> list[dict[str, Any]]:
    """The cells of a notebook."""
    return list(json.loads((ROOT / "examples" / name).read_text(encoding="utf-8"))["cells"])


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_notebook_of_the_first_hour_runs_with_its_solutions(tmp_path: Path, name: str) -> None:
    assert all(not cell.get("outputs") for cell in cells(name))  # nothing stale is kept
    code = "\n".join("".join(cell["source"]) for cell in cells(name) if cell["cell_type"] == "code")
    small = SMALL_TRAININGS.replace("vocab_size=400", "vocab_size=600")  # Chinese has more characters
    assert Workplace(tmp_path).run_python(small + code).count("→") == 10


def test_the_notebooks_in_two_languages_have_the_same_exercises_and_solutions() -> None:
    one, other = (cells(name) for name in NOTEBOOKS)
    assert [cell["cell_type"] for cell in one] == [cell["cell_type"] for cell in other]
    exercises = [sum("".join(cell["source"]).count(word) for cell in one) for word in ("**Exercise.**", "\n## ")]
    assert exercises == [sum("".join(cell["source"]).count(word) for cell in other) for word in ("**练习。**", "\n## ")]
    assert exercises[0] == 5


def test_the_citation_names_this_version_and_the_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "version", "license"} <= citation.keys()
    assert citation["version"] == dragoman.__version__
    assert citation["references"][0]["url"] == "https://arxiv.org/abs/1706.03762"
