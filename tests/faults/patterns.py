"""The register of regular expressions: every pattern of ``src/dragoman``, found in its sources, with its operations.

A pattern is evaluated in its module, so f-strings and constants need no entry. A pattern that is only known while a
function runs needs examples in ``EXAMPLES``; without them its place is listed by ``unknown``.
"""

from __future__ import annotations

import ast
import importlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import dragoman
from dragoman.languages.known import LANGUAGES
from dragoman.translation.keeping import dates, written_numbers
from growth import LARGEST

SRC = Path(dragoman.__file__).parent
CALLS = ("compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
OPERATIONS = CALLS[1:]


@dataclass(frozen=True)
class Registered:
    """A regular expression and the operations that the product uses it for."""

    where: str  # file and name, or file and line
    pattern: str | bytes
    flags: int
    operations: tuple[str, ...]


def _number_words() -> list[str]:
    """Return patterns of numbers in words, of each language that has them."""
    from dragoman.languages import numbers

    languages = [language for language in LANGUAGES if language.numbers]
    values = (0, 2, 7, 12, 21, 90, 365, 1990, 70_777, 999_999)
    made = [numbers.pattern_of(n, language.numbers, language.spaces) for language in languages for n in values]
    return [pattern for pattern in made if pattern]


EXAMPLES: dict[tuple[str, str], Any] = {}
"""For a file and the source of a pattern that a function makes: a function that returns examples of it."""

ONLY: dict[tuple[str, str], tuple[str, ...]] = {
    ("documents/office/package.py", "_MEMBERS"): ("fullmatch",),
    ("documents/subtitles/subrip.py", "SBV_TIMES"): ("match",),
    ("serving/connections.py", "_CHUNK_LINE"): ("fullmatch",),  # h11 uses both
    ("serving/connections.py", "_HEADER_LINE"): ("fullmatch",),
    ("documents/subtitles/subrip.py", "TIMES"): ("match",),
    ("translation/keeping/protected.py", "_ALL"): ("finditer",),  # compiled at its first use
    ("translation/segments.py", "_SENTENCE_END"): ("finditer",),
    ("translation/segments.py", "_SPACE"): ("finditer",),
}
"""For a file and a name: the operations of a pattern that is used under another name."""


def _languages(fact: str) -> list[str]:
    return [getattr(language, fact) for language in LANGUAGES if getattr(language, fact)]


EXAMPLES.update({
    ("languages/numbers.py", "pattern"): _number_words,
    ("translation/keeping/dates.py", "pattern"): lambda: [
        dates.clock_pattern(language.clock, language.spaces) for language in LANGUAGES if language.clock
    ],
    ("languages/sentences.py", "f'(?<![^\\\\W\\\\d])(?:{words})[.]\\\\s+(?=[^\\\\W\\\\d_])'"): lambda: [
        rf"(?<![^\W\d])(?:{words})[.]\s+(?=[^\W\d_])"
        for words in [*_languages("no_abbreviations"), *_languages("may_end")]
    ],
    ("languages/sentences.py", "f\"\"\"(?<![^\\\\s(\\\\[/«„“‘'’\\\\\"¿¡–-])(?:{language.titles})[.]\\\\s+$\"\"\""): lambda: [
        rf"(?<![^\s(\[/«„“‘'’\"¿¡–-])(?:{words})[.]\s+$" for words in _languages("titles")
    ],
    ("languages/stopwords.py", "f'[{language.letters}]'"): lambda: [f"[{x}]" for x in _languages("letters")],
    ("translation/keeping/cutting.py", "f'(?<![^\\\\s(\\\\[]){mark}(?=\\\\S)'"): lambda: [r"(?<![^\s(\[])\"(?=\S)"],
    ("translation/keeping/cutting.py", "f'(?<=\\\\S){mark}(?!\\\\w)'"): lambda: [r"(?<=\S)\"(?!\w)"],
    ("translation/keeping/written_numbers.py", "words"): lambda: [*written_numbers.WORDS_OF_SYMBOLS.values()],
    ("data/noise.py", "re.escape(word)"): lambda: [re.escape("word"), re.escape("a")],
    ("files.py", "re.escape(f'.{path.name}.') + '[0-9a-f]{8}\\\\.tmp'"): lambda: [r"\.a\.[0-9a-f]{8}\.tmp"],
    ("toolkits/marian/read.py", "re.escape(model.removesuffix('.npz')) + '\\\\.iter[0-9]+\\\\.npz'"): lambda: [
        r"model\.iter[0-9]+\.npz"
    ],
    ("documents/table_rows.py", "f'[^{sign}{self.newline}]*'"): lambda: [r"[^,\n]*", r"[^\|\r]*"],
    ("pages/render.py", "address"): lambda: [r"https?://(?:&amp;|[^\s<>()&\"'])*(?:&amp;|[^\s<>().,;&\"'])"],
    ("serving/app.py", "re.sub('{\\\\w+}', '[^/]+', route)"): lambda: ["/v2/document/[^/]+/result", "/v3/g/[^/]+/d/[^/]+"],
})  # fmt: skip


OF_ONE_CHARACTER = {
    ("languages/words.py", "pattern"), ("evaluation/writing.py", "pattern"), ("languages/detection.py", r"'\\p{L}'"),
    ("languages/detection.py", "'(?!)'"), ("languages/detection.py", "'[' + ''.join((f'\\\\p{{Script={name}}}' for name in names)) + ']'"),
    ("languages/detection.py", r"'[\\p{Han}\\p{Hiragana}\\p{Katakana}\\p{Thai}\\p{Lao}\\p{Khmer}\\p{Myanmar}]'"),
}  # fmt: skip
"""For a file and the source of a pattern of the package ``regex``: it matches a single character."""


@cache
def registered() -> tuple[Registered, ...]:
    """Return all patterns that could be evaluated."""
    return tuple(entry for entry in (*_all(), *of_scripts(), *of_http()) if isinstance(entry, Registered))


def unknown() -> list[str]:
    """Return the place and the source of each pattern that could not be evaluated and has no examples."""
    return [entry for entry in (*_all(), *of_scripts()) if isinstance(entry, str)]


@cache
def _all() -> list[Registered | str]:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SRC.rglob("*.py"))}
    uses = {path: _uses(tree) for path, tree in trees.items()}
    entries: list[Registered | str] = []
    for path, tree in trees.items():
        if "re" in {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}:
            entries += _of_file(path, tree, uses)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in ("re", "regex"):
                entries.append(f"{path.relative_to(SRC)}:{node.lineno}: import re as a module: from {node.module}")
            if isinstance(node, ast.Call) and ast.unparse(node.func) in [f"regex.{name}" for name in CALLS]:
                source = ast.unparse(node.args[0])
                if (str(path.relative_to(SRC)), source) not in OF_ONE_CHARACTER:
                    entries.append(f"{path.relative_to(SRC)}:{node.lineno}: of the package regex: {source}")
    return entries


def of_http() -> list[Registered]:
    """Return the patterns with which h11 reads requests, as they are once ``serving.connections`` has changed them."""
    importlib.import_module("dragoman.serving.connections")
    patterns = {
        (f"h11/{module}.py", name): value for module in ("_readers", "_headers", "_events")
        for name, value in vars(importlib.import_module(f"h11.{module}")).items() if isinstance(value, re.Pattern)
    }  # fmt: skip
    operation = {"obs_fold_re": "match"}
    return [
        Registered(f"{file}:{name}", pattern.pattern, pattern.flags, (operation.get(name, "fullmatch"),))
        for (file, name), pattern in patterns.items() if name != "status_line_re"  # of answers, which are our own
    ]  # fmt: skip


def _uses(tree: ast.AST) -> dict[str, set[str]]:
    """Return for each name the operations that are called on it in a file, such as ``_WORD.findall``."""
    uses: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in OPERATIONS:
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            uses.setdefault(name, set()).add(node.attr)
    return uses


def _of_file(path: Path, tree: ast.AST, uses: dict[Path, dict[str, set[str]]]) -> list[Registered | str]:
    """Return the patterns of a file; a text for each that could not be evaluated."""
    file = str(path.relative_to(SRC))
    name = ".".join(("dragoman", *path.relative_to(SRC).with_suffix("").parts))
    module = importlib.import_module(name.removesuffix(".__init__"))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    entries: list[Registered | str] = []
    for node in ast.walk(tree):
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS
        if not is_call or not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re"):
            continue
        source = ast.unparse(node.args[0])
        try:
            patterns = [_evaluated(node.args[0], module)]
        except NameError:
            if (file, source) not in EXAMPLES:
                entries.append(f"{file}:{node.lineno}: {source}")
                continue
            patterns = EXAMPLES[file, source]()
        flags = _flags(node, module)
        own, operations = _operations(node, parents, path, uses)
        where = f"{file}:{own or node.lineno}"
        entries += [
            Registered(where, pattern.pattern, pattern.flags, operations)
            for pattern in (p if isinstance(p, re.Pattern) else re.compile(p, flags) for p in patterns)
        ]
    return entries


def _evaluated(node: ast.expr, module: Any) -> Any:
    return eval(compile(ast.Expression(node), "<pattern>", "eval"), vars(module))


def _flags(node: ast.Call, module: Any) -> int:
    """Return the flags of a call, which are its keyword or the second argument of ``re.compile``."""
    keywords = [keyword.value for keyword in node.keywords if keyword.arg == "flags"]
    place = 1 if node.func.attr == "compile" else 99  # type: ignore[attr-defined]
    return int(_evaluated((keywords or node.args[place:])[0], module)) if keywords or node.args[place:] else 0


def _operations(
    node: ast.Call, parents: dict[ast.AST, ast.AST], path: Path, uses: dict[Path, dict[str, set[str]]]
) -> tuple[str, tuple[str, ...]]:
    """Return the name of a pattern ("" if it has none) and its operations; all of them if they are not known."""
    if node.func.attr != "compile":  # type: ignore[attr-defined]
        return "", (node.func.attr,)  # type: ignore[attr-defined]
    parent, owner = parents[node], parents[node]
    if isinstance(parent, ast.Attribute) and parent.attr in OPERATIONS:
        return "", (parent.attr,)
    while owner in parents and not isinstance(owner, ast.stmt):
        owner = parents[owner]
    target = owner.targets[0] if isinstance(owner, ast.Assign) else getattr(owner, "target", None)
    name = target.id if isinstance(target, ast.Name) else ""
    files = [path] if name.startswith("_") or not name else [*uses]
    operations = {use for file in files for use in uses[file].get(name, ())}
    chosen = ONLY.get((str(path.relative_to(SRC)), name)) or tuple(sorted(operations)) or ("fullmatch", "search")
    return name, chosen


AT_MOST: dict[tuple[str, str], int] = {
    ("documents/xml.py", "_DECLARED"): 200,
}
"""For a file and a name or line: the longest text in characters that its caller passes."""


def at_most(entry: Registered) -> int:
    """Return the longest text that a pattern is used on, in characters."""
    file, _, name = entry.where.rpartition(":")
    return AT_MOST.get((file, name), LARGEST)


_LITERAL = re.compile(r"(?<=[(=,:\[!&|?; \n])/(?![/*> ])((?:\\.|\[(?:\\.|[^\]\\\n])*+\]|[^/\\\n\[])+)/([dgimsuvy]*)")
_OF_PYTHON = {r"\/": "/", "[^]": r"[\s\S]", r"\u{20000}": r"\U00020000", r"\u{3ffff}": r"\U0003ffff",
              r"\p{L}": "a-z", r"\p{N}": "0-9", r"\p{M}": "\u0300"}  # fmt: skip
SCRIPT_EXAMPLES = {
    "pages/serve.js": [r"[,]( *\"(?:[^\"]|\"\")*\" *(?=[,\r\n]|$)|[^,\r\n]*)"],
}
"""Patterns that a script makes with ``new RegExp``, as Python writes them: as many for a file as it has such calls."""


def of_scripts() -> list[Registered | str]:
    """Return the patterns of the pages' scripts, as Python writes them: both engines backtrack in the same way."""
    entries: list[Registered | str] = []
    for path in sorted((*SRC.rglob("*.js"), *SRC.rglob("*.html"))):
        file, source = str(path.relative_to(SRC)), path.read_text(encoding="utf-8")
        made = SCRIPT_EXAMPLES.get(file, [])
        if source.count("new RegExp(") != len(made):
            entries.append(f"{file}: {source.count('new RegExp(')} calls of RegExp, {len(made)} examples")
        found = [(match[1], match[2]) for match in _LITERAL.finditer(source) if path.suffix == ".js"]
        for pattern, flags in [*found, *((pattern, "g") for pattern in made)]:
            for of_script, of_python in _OF_PYTHON.items():
                pattern = pattern.replace(of_script, of_python)
            number = sum(re.I if flag == "i" else re.S if flag == "s" else 0 for flag in flags)
            entries.append(Registered(f"{file}:/{pattern[:30]}/", pattern, number, ("search", "sub")))
    return entries
