"""Options of bulk translation: the machines, and the folder of shards."""

from __future__ import annotations

from dragoman.options import DeviceOptions, Options, option, option_group


@option_group
class Machines(DeviceOptions):
    """The machines that translate: one device of this machine, or those of a Ray cluster."""

    ray: str | None = option(
        None,
        "Speed",
        "Ray cluster that translates a folder of shards (text, .gz, .zst, .parquet) into --out: local, auto "
        "or HOST:PORT.",
        metavar="ADDRESS",
    )
    actors: int | None = option(
        None, "Speed", "Models at work on the cluster (default: as many as it has room for).", ge=1
    )


@option_group
class FolderOptions(Options):
    """Options of a folder of shards."""

    column: str | None = option(None, "Output", "Column of .parquet files to translate.")
    restart: bool = option(False, "Output", "Translate all shards again, finished ones too.")
