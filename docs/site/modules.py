"""The tree of modules on the architecture page, made from their first lines.

    python -m docs.site modules    # writes it again

Folders come in the order of the levels, from the ground up, and files by name; the page's list of levels is the source
of the order.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src/dragoman"
PAGE = ROOT / "docs/project/architecture.md"
COLUMN = 24
"""Characters before the description of a module, its indentation included."""
REST = """tests/              mirrors src; parity/ holds the model to the reference
benchmarks/         measurements, and their results with machine, versions and command
configs/            complete configurations
docs/               this folder
examples/           small programs, each run by a test"""


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring without its full stop; a package's is that of ``__init__.py``."""
    file = path / "__init__.py" if path.is_dir() else path
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    line = text.split("\n")[0]
    return line.removesuffix(".") if not line.endswith("..") else line


def tree() -> str:
    """Return the tree of ``src/dragoman``, a line for each package and module, and the other folders."""
    rows = re.findall(r"^\| \d+ \| .+", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    from_the_ground_up = re.findall(r"`(\w+)`", " ".join(reversed(rows)))
    packages = sorted(
        (path for path in PACKAGE.iterdir() if is_package(path)), key=lambda p: from_the_ground_up.index(p.name)
    )
    lines = ["src/dragoman/", *(described(path, "  ") for path in sorted(PACKAGE.glob("*.py")))]
    for package in packages:
        lines += below(package, "  ")
    return "\n".join([*lines, REST])


def is_package(path: Path) -> bool:
    """True if a folder is a package."""
    return (path / "__init__.py").is_file()


def described(path: Path, indent: str) -> str:
    """Return the line of a module or a package."""
    name = f"{indent}{path.name}{'/' * path.is_dir()} "
    return f"{name:{COLUMN}}{first_line(path)}"


def below(package: Path, indent: str) -> list[str]:
    """Return the lines of a package, of its modules and of the packages in it."""
    modules = sorted(path for path in package.glob("*.py") if path.name != "__init__.py")
    inner = sorted(path for path in package.iterdir() if is_package(path))
    lines = [described(package, indent), *(described(path, f"{indent}  ") for path in modules)]
    return lines + [line for path in inner for line in below(path, f"{indent}  ")]


def with_tree(page: str) -> str:
    """Return the text of the architecture page with the tree of today."""
    return re.sub(
        r"```text\nsrc/dragoman/\n.*?```", lambda _: f"```text\n{tree()}\n```", page, count=1, flags=re.DOTALL
    )


def write() -> None:
    """Write the tree into the architecture page again."""
    PAGE.write_text(with_tree(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
