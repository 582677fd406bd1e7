"""API keys: random, shown once, kept as SHA-256 in a file, compared in constant time.

A line of the file is ``name sha256``. A key has 256 random bits, so a fast hash is enough: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from pathlib import Path

from dragoman.errors import ConfigError
from dragoman.files import explained

_LINE = re.compile(r"([A-Za-z0-9._-]{1,64}) ([0-9a-f]{64})")


def make_key(path: Path, name: str) -> str:
    """Make a key, append its hash to a file that only its owner may read, and return it: it is stored nowhere.

    Raises:
        ConfigError: The name is taken or has other characters than letters, digits and ``._-``; or the file is broken.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
        raise ConfigError(f"{name!r} is no name of a key: use up to 64 letters, digits, '.', '_' and '-'")
    if path.exists() and name in Keys.load(path).names:
        raise ConfigError(f"{path} has a key named {name} already: choose another name, or delete its line")
    key = secrets.token_urlsafe(32)
    with explained(path):
        path.touch(mode=0o600)
        with path.open("a", encoding="ascii") as file:
            file.write(f"{name} {_hash(key)}\n")
    return key


class Keys:
    """The keys that are accepted."""

    def __init__(self, hashes: dict[str, str]) -> None:
        """``hashes``: the hash of each key, by its name."""
        self._hashes = hashes

    @property
    def names(self) -> list[str]:
        """Whose keys they are."""
        return list(self._hashes)

    @classmethod
    def load(cls, path: Path) -> Keys:
        """Read a file of keys.

        Raises:
            ConfigError: It cannot be read, has a line that is no key (it is named), or no key at all.
        """
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: no file of keys ({error}); make one with --make-key NAME") from None
        hashes = {}
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            found = _LINE.fullmatch(line.strip())
            if found is None:
                raise ConfigError(f"{path}:{number}: not 'NAME SHA256', which is what --make-key writes")
            hashes[found[1]] = found[2]
        if not hashes:
            raise ConfigError(f"{path} has no keys: make one with --make-key NAME")
        return cls(hashes)

    def owner(self, key: str) -> str | None:
        """Whose key it is; None: nobody's. All are compared, so the time tells nothing."""
        asked, found = _hash(key), None
        for name, known in self._hashes.items():
            if hmac.compare_digest(asked, known):
                found = name
        return found


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
