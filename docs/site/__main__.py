"""``python -m docs.site``: build both languages into docs/_build/html, offline; a problem ends it with its place.

``numbers`` writes the numbers of the results into the pages again and moves the comments behind them out, ``stamp
PAGE...`` notes that Chinese pages have been brought up to their English ones, ``reference`` writes the parts of pages
that are made from the code, ``modules`` writes the tree of modules into the architecture page, ``figures`` writes the
figures with Chinese labels that README.zh-CN.md shows, ``record RUN`` runs the examples of the commands and keeps what
they print.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from docs.site import chinese_figures, modules, numbers, questions, reference, translator
from docs.site.gather import DOCS, LANGUAGES, ROOT, Gatherer, fingerprint, front_matter, sources
from docs.site.problems import BrokenDocsError

BUILT = DOCS / "_build"


def build(only: Collection[str] = ()) -> None:
    """Gather, build, and ask the list of questions of what was built.

    Raises:
        BrokenDocsError: A page is wrong, or a question is not answered where the list says.
    """
    problems: list[str] = []
    for name, language in LANGUAGES.items():
        if only and name not in only:
            continue
        source, out = BUILT / "source" / name, BUILT / "html" / ("" if name == "en" else name)
        Gatherer(name, source).gather()
        if name == "en":
            shutil.rmtree(out, ignore_errors=True)
        command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--fresh-env"]
        command += [
            "--conf-dir",
            str(DOCS / "site"),
            "--doctree-dir",
            str(BUILT / "doctrees" / name),
            str(source),
            str(out),
        ]
        environment = {**os.environ, "DRAGOMAN_DOCS_LANGUAGE": language, "PYTHONHASHSEED": "0"}
        done = subprocess.run(command, env=environment, cwd=ROOT)
        if done.returncode:
            raise BrokenDocsError([f"Sphinx ends with {done.returncode} for {name}: see its warnings above"])
        for notebook in ROOT.glob("examples/*.ipynb"):  # beside its page; in the sources it would become one itself
            shutil.copy(notebook, out / "files/examples")
        target = "de" if name == "en" else "zh"
        translator.write(target, BUILT / "translator", out / "understand/translator.html")
        problems += questions.unanswered(source, out, name)
    if problems:
        raise BrokenDocsError(problems)
    print(BUILT / "html/index.html")


def renew_numbers() -> None:
    """Write each number as its file has it; move the comments behind numbers out of the pages."""
    for path in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]:
        if BUILT in path.parents:
            continue
        page, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        plain, entries = numbers.moved(page, text)
        numbers.write_entries(page, entries)
        new, wrong = numbers.renewed(page, plain)
        if new != text:
            path.write_text(new, encoding="utf-8")
        for problem in wrong:
            print(problem)


def stamp(pages: list[Path]) -> None:
    """Note in Chinese pages which English text they say the same as."""
    english = sources()
    for path in pages:
        where = path.resolve().relative_to(DOCS / "zh").as_posix()
        _, text = front_matter(path.read_text(encoding="utf-8"))
        path.write_text(f"---\nenglish: {fingerprint(english[where])}\n---\n\n{text}", encoding="utf-8")


ALONE = {
    "numbers": renew_numbers, "modules": modules.write, "reference": reference.write, "figures": chinese_figures.write,
}  # fmt: skip
"""What is done by its name alone."""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=re.sub("`", "", __doc__ or ""))
    parser.add_argument("do", nargs="?", default="build", choices=["build", *ALONE, "stamp", "record"])
    parser.add_argument(
        "given",
        nargs="*",
        type=Path,
        help="build: en or zh alone; stamp: pages below docs/zh; record: a demo's run and its log",
    )
    args = parser.parse_args()
    try:
        if args.do == "build":
            build([str(name) for name in args.given])
        elif args.do in ALONE:
            ALONE[args.do]()
        elif args.do == "stamp":
            stamp(args.given)
        else:
            from docs.site.record import record

            record(*args.given)
    except BrokenDocsError as broken:
        sys.exit("\n".join(broken.problems))


if __name__ == "__main__":
    main()
