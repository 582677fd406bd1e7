"""Places of the code that make something at its first use: two threads may come there together.

The rule: a place is lazy if it sets an attribute, a global or an entry after it saw that there is none. It must hold a
lock, or stand in ``HARMLESS`` with the reason why making it twice changes nothing.

A function whose answers Python keeps (``cache``, ``lru_cache``, ``cached_property``) is lazy too: two threads may call
it at once. So it must do nothing but answer; and if all answers are kept for ever, it must not be called with texts,
which clients choose. The others stand in ``KEPT`` with their reasons. Libraries that do so stand in ``KEEPING``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import dragoman

ROOMS = ("serving", "translation", "toolkits", "decoding", "languages", "fast", "budget.py", "bundle.py", "progress.py")
"""Parts of the package that several threads of a server use."""

LOCKS = ("lock", "making", "changing", "sharing", "planning", "changed", "counting", "alone", "one_at_a_time")
"""Words in the names of locks."""

ALONE = "one thread alone has the object"
PURE = "two threads make equal values, and one of them stays"
HARMLESS = {
    ("decoding/constraints.py", "_answer", "self.answers"): PURE,
    ("languages/numbers.py", "take", "self._counts"): ALONE,
    ("serving/app.py", "described", "app.openapi_schema"): PURE,
    ("serving/jobs.py", "seconds", "self._seen"): PURE,
    ("serving/storage.py", "get", "self._values"): PURE,
    ("serving/watchdog.py", "_fail", "self.failure"): ALONE,
    ("toolkits/onnx/graph.py", "_rounded_product", "self._inputs"): ALONE,
    ("translation/keeping/cutting.py", "gap", "self._gaps"): ALONE,
    ("translation/note_report.py", "_opened", "self._file"): ALONE,
    ("translation/note_report.py", "add", "self._remark_places"): ALONE,
}
"""File, function and name of each lazy place without a lock, with its reason."""


TWICE = "a warning or a check comes twice, and nothing else"
FEW = "it is called with names of the code or of served languages, or with single letters"
KEPT = {
    ("data/encodings.py", "_script", "grows"): FEW,
    ("data/normalisation.py", "_specification", "acts"): "it sets the level of a library's log, to the same value",
    ("device.py", "warn_of_emulated_bf16", "acts"): TWICE,
    ("doctor/forms.py", "_codecs", "grows"): FEW,
    ("explanation/style.py", "scale", "acts"): TWICE,
    ("fast/private_ops.py", "works", "acts"): TWICE,
    ("fast/private_ops.py", "works", "grows"): FEW,
    ("languages/detection.py", "_has", "acts"): TWICE,
    ("languages/detection.py", "_pattern", "grows"): FEW,
    ("training/distributed.py", "_end_with_the_launcher", "acts"): "a rank calls it once, from its main thread",
}
"""File, function and fault of each function whose answers are kept and that does more or grows, with its reason."""

CACHES = ("cache", "lru_cache", "cached_property")

KEEPING = {"langcodes": "languages/codes.py"}
"""Libraries that keep for ever what they were asked, each with the one file that imports it, and bounds that."""


ROOT = Path(dragoman.__file__).parent


def functions_of(path: Path) -> Iterator[ast.FunctionDef]:
    """Yield the functions and methods of a file, those inside others too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def importers_of(library: str) -> set[str]:
    """Return the files of the package that import a library."""
    importing = re.compile(rf"^\s*(?:import|from) {library}\b", re.MULTILINE)
    return {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if importing.search(path.read_text("utf-8"))}


def kept_places() -> Iterator[tuple[str, str, str]]:
    """Yield (file, function, fault) of each function of the package whose answers are kept, and that has a fault."""
    for path in sorted(ROOT.rglob("*.py")):
        if "cache" in path.read_text(encoding="utf-8"):
            for function in functions_of(path):
                for fault in faults_of_kept(function):
                    yield str(path.relative_to(ROOT)), function.name, fault


def faults_of_kept(function: ast.FunctionDef) -> Iterator[str]:
    """Yield what may be wrong if Python keeps the answers of a function: "acts", or "grows"."""
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    names = [decorator.partition("(")[0].rpartition(".")[2] for decorator in decorators]
    if not set(names) & set(CACHES):
        return
    if any(_acts(node, function) for node in ast.walk(function)):
        yield "acts"
    has_texts = any("str" in ast.unparse(own.annotation) for own in function.args.args if own.annotation is not None)
    if has_texts and ("cache" in names or any("maxsize=None" in decorator for decorator in decorators)):
        yield "grows"


def _acts(node: ast.AST, function: ast.FunctionDef) -> bool:
    """Return True if a statement changes, or calls for its effect, what is not the function's own."""
    own = {name.id for name in ast.walk(function) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call) and _root(node.value.func) not in own
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(target, ast.Attribute | ast.Subscript) and _root(target) not in own for target in targets)
    return isinstance(node, ast.Global | ast.Nonlocal)


def _root(node: ast.expr) -> str:
    """Return the name that an expression such as ``a.b[0].c`` begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def lazy_places() -> Iterator[tuple[str, str, str]]:
    """Yield (file, function, name) of each lazy place without a lock."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")) if (ROOT / room).is_dir() else [ROOT / room]:
            for function in functions_of(path):
                if function.name != "__init__":
                    for name in places_in(function):
                        yield str(path.relative_to(ROOT)), function.name, name


def places_in(function: ast.FunctionDef) -> Iterator[str]:
    outer = {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
    assigned = [
        (ast.unparse(node.targets[0]), ast.unparse(node.value))
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
    ]
    for test, body in _unlocked_tests(function):
        for node in (own for statement in body for own in ast.walk(statement)):
            if not isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                place = target.value if isinstance(target, ast.Subscript) else target
                name = ast.unparse(place)
                # ``if self._x is None``, ``if key not in self._x``, and a local name that was read from it before.
                seen = {name, *(local for local, value in assigned if name in value and name != local)}
                is_shared = "." in name or name in outer
                if is_shared and any(isinstance(own, ast.expr) and ast.unparse(own) in seen for own in ast.walk(test)):
                    yield name


def _unlocked_tests(node: ast.AST, is_locked: bool = False) -> Iterator[tuple[ast.expr, list[ast.stmt]]]:
    """Yield the condition and the body of each ``if`` and ``while`` that tests for absence outside of a lock."""
    for child in ast.iter_child_nodes(node):
        locked = is_locked
        if isinstance(child, ast.With | ast.AsyncWith):
            held = " ".join(ast.unparse(item.context_expr).lower() for item in child.items)
            locked = is_locked or any(word in held for word in LOCKS)
        if isinstance(child, ast.If | ast.While) and not locked and _tests_absence(child.test):
            yield child.test, child.body
        yield from _unlocked_tests(child, locked)


def _tests_absence(test: ast.expr) -> bool:
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.NotIn):
            return True
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return True
    return False
