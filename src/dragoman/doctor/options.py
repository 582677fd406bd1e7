"""Options of ``dragoman doctor`` that name the text to examine. Nothing here imports torch: --help stays fast."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.options import Options, QuietOptions, option, option_group
from dragoman.training.options import OverrideOptions, TableOptions

if TYPE_CHECKING:
    from dragoman.config import TextFiles


@option_group
class ExaminedText(TableOptions):
    """The two files of the training, validation and test text, and the columns to read of a table."""

    src: Path | None = option(None, "Text", "Source side of the training text (also .gz, .zst).")
    tgt: Path | None = option(None, "Text", "Target side of the training text, aligned with --src line by line.")
    valid_src: Path | None = option(None, "Text", "Source side of the validation set.")
    valid_tgt: Path | None = option(None, "Text", "Target side of the validation set.")
    test_src: Path | None = option(None, "Text", "Source side of the test set.")
    test_ref: Path | None = option(None, "Text", "References of the test set.")

    @property
    def sets(self) -> dict[str, tuple[TextFiles, ...]]:
        """The two files of each set that the options name, by ``train``, ``valid`` and ``test``.

        Raises:
            ConfigError: One side of a set is missing.
        """
        from dragoman.config import PairOfFiles  # not at the top: it loads YAML, and --help does without

        sets: dict[str, tuple[TextFiles, ...]] = {}
        for name, text, src, tgt in (
            ("train", "the training text", "src", "tgt"),
            ("valid", "the validation text", "valid_src", "valid_tgt"),
            ("test", "the test text", "test_src", "test_ref"),
        ):
            if self.has_both_sides(text, src, tgt):
                sets[name] = (PairOfFiles(src=getattr(self, src), tgt=getattr(self, tgt)),)
        return sets


@option_group
class ExaminedSettings(OverrideOptions, QuietOptions):
    """The settings and the memory with which the text would be trained on."""

    memory: float | None = option(
        None, "Settings", "Memory available for training, in GiB (default: all of the GPU or machine).", ge=0.01
    )


@option_group
class ExaminationOutput(Options):
    """Files that the examination writes beside its report."""

    out: Path | None = option(None, "Output", "Also write a report with figures to DIR/doctor.html.", metavar="DIR")
    as_json: bool = option(False, "Output", "Print the findings as one JSON object.", flag="--json")
    listed: Path | None = option(
        None, "Output", "Write every line of every finding to FILE, as a table.", flag="--list", metavar="FILE"
    )
    write: tuple[Path, Path] | None = option(
        None, "Output", "Write the text mended to two files, and a log of each line that was mended or dropped to "
        "SRC.log.tsv.", metavar="SRC TGT",
    )  # fmt: skip
