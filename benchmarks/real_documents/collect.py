"""Draw documents from the newest commits of git repositories, by a rule: the same commits give the same files.

    python -m benchmarks.real_documents.collect OUT REPOSITORY... [--most N] [--without FOLDER]

REPOSITORY is a git directory. Of each repository and suffix at most ``MOST`` files are drawn with ``SEED``, none above
``MOST_BYTES``, none twice, and none that stands in FOLDER, an earlier draw. OUT gets the files, ``OUT/sources.json``
the commits, the counts and a sum of all.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
from collections import Counter
from pathlib import Path

from dragoman.documents.formats import supported_suffixes

SEED = 41
MOST = 60
MOST_BYTES = 400_000


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("repositories", type=Path, nargs="+")
    parser.add_argument("--most", type=int, default=MOST, help="number of files of a repository and suffix")
    parser.add_argument("--without", type=Path, help="folder of an earlier draw, whose files are not drawn again")
    options = parser.parse_args()
    earlier = options.without.rglob("*") if options.without else ()
    seen = {hashlib.sha256(path.read_bytes()).hexdigest() for path in earlier if path.is_file()}
    sources = {}
    for repository in options.repositories:
        name = _name(repository)
        sources[name] = _draw(repository, options.out / name.replace("/", "+"), seen, options.most)
        print(name, sources[name]["files"], flush=True)
    totals: Counter[str] = Counter()
    for source in sources.values():
        totals.update(source["files"])
    report = {"seed": SEED, "most_of_a_suffix": options.most, "most_bytes": MOST_BYTES, "repositories": sources,
              "files": dict(sorted(totals.items())), "all": sum(totals.values())}  # fmt: skip
    (options.out / "sources.json").write_text(json.dumps(report, indent=1) + "\n")
    print(report["files"], report["all"], len(sources))


def _git(repository: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", str(repository), *words], check=True, capture_output=True).stdout


def _name(repository: Path) -> str:
    """Return owner and name: of a folder ``owner+name``, or the folder's own."""
    part = next((part for part in reversed(repository.parts) if "+" in part), repository.name)
    return part.replace("+", "/", 1)


def _draw(repository: Path, out: Path, seen: set[str], most: int) -> dict[str, object]:
    """Write the files of one repository; return its commit, counts and sum."""
    commit = _git(repository, "rev-parse", "HEAD").decode().strip()
    by_suffix: dict[str, list[tuple[str, str]]] = {}
    for line in _git(repository, "ls-tree", "-r", "-l", "-z", "HEAD").decode("utf-8", "replace").split("\0"):
        head, _, path = line.partition("\t")
        mode, kind, blob, size = ((*head.split(), "", "", "", ""))[:4]
        suffix = Path(path).suffix.lower()
        usable = kind == "blob" and mode != "120000" and size.isdigit() and 0 < int(size) <= MOST_BYTES
        if usable and suffix in supported_suffixes():
            by_suffix.setdefault(suffix, []).append((path, blob))
    counts: Counter[str] = Counter()
    sums = []
    for suffix, files in sorted(by_suffix.items()):
        files.sort()
        random.Random(f"{SEED} {suffix}").shuffle(files)
        for path, blob in files:
            if counts[suffix] >= most:
                break
            try:
                content = _git(repository, "cat-file", "blob", blob)
            except subprocess.CalledProcessError:  # a large file that the copy of the repository lacks
                continue
            digest = hashlib.sha256(content).hexdigest()
            if digest in seen or content.startswith(b"version https://git-lfs"):
                continue
            seen.add(digest)
            target = out / path.replace("/", "__")[-200:]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            counts[suffix] += 1
            sums.append(f"{digest} {path}")
    total = hashlib.sha256("\n".join(sorted(sums)).encode()).hexdigest()
    return {"commit": commit, "files": dict(counts), "sha256": total}


if __name__ == "__main__":
    main()
