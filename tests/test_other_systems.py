"""What can be known here of systems that no test runs on."""

from __future__ import annotations

import subprocess
import sys

WITHOUT = """
import importlib, pkgutil, sys
for name in ("resource", "readline"):  # not every Unix has them
    sys.modules[name] = None
import dragoman
names = [one.name for one in pkgutil.walk_packages(dragoman.__path__, "dragoman.") if one.name != "dragoman.__main__"]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


def test_every_module_can_be_imported_without_what_only_some_systems_have() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 150


def test_on_windows_the_refusal_says_what_to_do() -> None:
    script = "import sys; sys.platform = 'win32'; import dragoman"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: dragoman needs a Unix: it locks files as only those do. On Windows install it in WSL"
    )
