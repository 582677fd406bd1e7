"""Options of bulk translation: the machines, and the folder of shards."""

from __future__ import annotations

from typing import Annotated

from dragoman.options import DeviceOptions, Options, option, option_group


@option_group
class Machines(DeviceOptions):
    """The machines that translate: one device of this machine, or those of a Ray cluster."""

    ray: Annotated[
        str | None,
        option(
            "Speed",
            "Ray cluster that translates a folder of shards (text, .gz, .zst, .parquet) into --out: local, auto "
            "or HOST:PORT.",
            metavar="ADDRESS",
        ),
    ] = None
    actors: Annotated[
        int | None, option("Speed", "Models at work on the cluster (default: as many as it has room for).", ge=1)
    ] = None


@option_group
class FolderOptions(Options):
    """Options of a folder of shards."""

    column: Annotated[str | None, option("Output", "Column of .parquet files to translate.")] = None
    restart: Annotated[bool, option("Output", "Translate all shards again, finished ones too.")] = False
