"""Systems that take turns, and what is said of their figures."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from benchmarks.harness.peer import System, started
from benchmarks.record import spread

Figures = dict[str, Any]
Item = TypeVar("Item")


def turns(items: Sequence[Item], rounds: int) -> Iterator[tuple[int, Item]]:
    """Every item once a round; each round begins with the next one, so that none is always the first."""
    for round_ in range(rounds):
        first = round_ % max(len(items), 1)
        yield from ((round_, item) for item in (*items[first:], *items[:first]))


def alternate(
    systems: Sequence[System], rounds: int, turn: Callable[[System], Figures], headline: str
) -> dict[str, list[Figures]]:
    """Let the systems take turns; each turn's figures, by system, in the order of rounds.

    Args:
        turn: Runs a system once, from a fresh process on: what was before it does not count.
        headline: The figure that is printed meanwhile.
    """
    found: dict[str, list[Figures]] = {system.name: [] for system in systems}
    for round_, system in turns(systems, rounds):
        began = time.perf_counter()
        figures = turn(system)
        found[system.name].append(figures)
        say(
            f"round {round_ + 1}/{rounds}  {system.name}: {headline} {figures[headline]:,.1f}, peak "
            f"{figures['peak_mib']:,.0f} MiB ({time.perf_counter() - began:.0f} s)"
        )
    return found


def once(system: System, **request: Any) -> Figures:
    """A turn that asks once."""
    with started(system) as ask:
        return ask(**request)


def summary(found: Mapping[str, Sequence[Figures]], keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Of each system the median and spread of each figure, and its versions."""
    return {
        name: {key: spread([one[key] for one in runs]) for key in keys if key in runs[0]}
        | {"versions": runs[0].get("versions", {})}
        for name, runs in found.items()
    }


def ratios(
    found: Mapping[str, Sequence[Figures]], key: str, ours: Sequence[str], peers: Sequence[str], inverse: bool = False
) -> dict[str, dict[str, float]]:
    """``ours / peer`` of runs of the same round, which a machine's drift leaves alone; ``inverse`` for times."""
    table = {}
    for mine in ours:
        for peer in peers:
            pairs = [(a[key], b[key]) for a, b in zip(found[mine], found[peer], strict=True)]
            table[f"{mine} / {peer}"] = spread([b / a if inverse else a / b for a, b in pairs])
    return table


def best(name: str, settings: Sequence[Item], score: Callable[[Item], float]) -> tuple[Item, list[dict[str, Any]]]:
    """Try each setting once; the one of the greatest score, and what was found for all."""
    tried: list[tuple[float, Item]] = []
    for setting in settings:
        tried.append((score(setting), setting))
        say(f"{name} with {setting}: {tried[-1][0]:,.1f}")
    chosen = max(range(len(tried)), key=lambda i: tried[i][0])
    return settings[chosen], [{"setting": setting, "score": round(value, 2)} for value, setting in tried]


def say(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)
