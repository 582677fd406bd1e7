"""Every kind of finding about parallel text: its words, the advice, and the shares that make it worse than a note."""

from __future__ import annotations

from dragoman.doctor.findings import Kind

KINDS: dict[str, Kind] = {
    "not-utf8": Kind(
        "contain bytes that are not UTF-8",
        "training refuses them: no encoding fits a whole file, so mend these lines, or drop them from both sides",
        error=0,
        unit="lines",
    ),
    "nul": Kind(
        "contain a NUL character",
        "training refuses them: mend these lines, or drop them from both sides",
        error=0,
        unit="lines",
    ),
    "too-long-line": Kind(
        "are longer than training allows",
        "training refuses them: put one sentence in each line",
        error=0,
        unit="lines",
    ),
    "byte-order-mark": Kind(
        "begin with a byte order mark",
        "nothing to do: it is removed when the file is read",
        warning=2,
        unit="lines",
    ),
    "carriage-return": Kind(
        "end in CR LF",
        "nothing to do: the CR is removed when the file is read",
        warning=2,
        unit="lines",
    ),
    "line-break": Kind(
        "contain a line break",
        "training drops them, because a translation has one line: remove the break from the cell",
        error=0.05,
    ),
    "control": Kind(
        "contain control characters",
        "remove them, or the model learns to write them; check CR and U+2028 inside lines",
        unit="lines",
    ),
    "replacement": Kind(
        "contain U+FFFD, the mark of a lost character",
        "get the text again and decode it correctly, or drop the pairs",
        error=0.05,
        unit="lines",
    ),
    "mojibake": Kind(
        "were decoded with the wrong encoding, as in 'schÃ¶n'",
        "undo it (text.encode('cp1252').decode('utf-8')) or drop the pairs",
        error=0.05,
        unit="lines",
    ),
    "entity": Kind(
        "contain HTML entities such as &quot;",
        "unescape them on both sides (html.unescape)",
        warning=0.001,
        unit="lines",
    ),
    "no-break-space": Kind(
        "contain no-break spaces",
        "replace them with spaces, unless the output should have them",
        warning=0.01,
        unit="lines",
    ),
    "invisible": Kind(
        "contain invisible characters (zero-width, soft hyphens, direction marks)",
        "remove them: to the model, words with and without them are different words",
        unit="lines",
    ),
    "empty": Kind(
        "have a blank side",
        "nothing to do: training drops them; if there are many, the files are not aligned",
        warning=0.01,
        error=0.2,
    ),
    "untranslated": Kind(
        "are the same on both sides, or nearly",
        "drop them: a model that sees them learns to copy",
        warning=0.005,
        error=0.3,
    ),
    "source-script": Kind(
        "have a source that is not in its language's script",
        "drop them, or set data.src_lang if the language is another",
        warning=0.005,
        error=0.5,
    ),
    "target-script": Kind(
        "have a target that is not in its language's script",
        "drop them: the model learns to write them; or set data.tgt_lang if the language is another",
        warning=0.005,
        error=0.5,
    ),
    "source-language": Kind(
        "have a source that seems to be in another language",
        "look at the examples and drop them",
        warning=0.005,
        error=0.5,
    ),
    "target-language": Kind(
        "have a target that seems to be in another language",
        "look at the examples and drop them: the model learns to write them",
        warning=0.002,
        error=0.5,
    ),
    "swapped-sides": Kind(
        "have source and target swapped",
        "swap them back; if nearly all are swapped, exchange the two files",
        error=0.5,
    ),
    "case": Kind(
        "are in capitals on one side only",
        "usually harmless; use the same case on both sides if the output must keep it",
        warning=0.02,
    ),
    "final-mark": Kind(
        "end in . ? or ! on one side only, or in different marks",
        "use the same marks on both sides: the model learns to drop or add them",
        warning=0.1,
    ),
    "length-ratio": Kind(
        "have very different lengths",
        "look at the examples; data.max_ratio drops pairs by subwords",
        warning=0.01,
        error=0.2,
    ),
    "misaligned": Kind(
        "have sides that do not seem to be translations of each other",
        "look at the examples; drop these pairs",
        warning=0.02,
        error=0.3,
    ),
    "duplicate": Kind(
        "repeat an earlier pair",
        "set data.drop_duplicates to true, unless they are repeated on purpose",
        warning=0.02,
    ),
    "near-duplicate": Kind(
        "repeat an earlier pair except for case, punctuation or spaces",
        "drop them if they fill the corpus",
        warning=0.05,
    ),
    "source-repeated": Kind(
        "repeat an earlier source with another target",
        "several translations of one source are fine; keep one copy of boilerplate and of text that was read twice",
        warning=0.3,
        silent=0.01,
    ),
    "target-repeated": Kind(
        "repeat an earlier target with another source",
        "a target with many sources teaches the model to write it always: keep one copy of boilerplate",
        warning=0.3,
        silent=0.01,
    ),
}
