"""A package by Argos Translate, in an environment of its own: python argos.py PACKAGE FROM TO < lines > lines."""

import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path


def main() -> None:
    """Install the package into a new folder and translate line by line, as its command does."""
    package, source, target = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as scratch:
        aside = f"{scratch}/aside"
        os.environ |= {"ARGOS_PACKAGES_DIR": f"{scratch}/packages", "XDG_DATA_HOME": aside, "XDG_CONFIG_HOME": aside}
        Path(scratch, "packages").mkdir()
        from argostranslate import package as packages
        from argostranslate import translate

        packages.install_from_path(Path(package))
        translation = translate.get_translation_from_codes(source, target)
        for line in sys.stdin.read().removesuffix("\n").split("\n"):
            print(translation.translate(line).replace("\n", " "))
    names = ("argostranslate", "argos-translate-lt")
    known = [f"{name} {version(name)}" for name in names if _is_there(name)]
    print(*known, f"ctranslate2 {version('ctranslate2')}", sep=", ", file=sys.stderr)


def _is_there(name: str) -> bool:
    try:
        version(name)
    except ImportError:
        return False
    return True


if __name__ == "__main__":
    main()
