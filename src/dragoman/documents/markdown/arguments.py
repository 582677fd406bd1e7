"""Words in the arguments of Hugo's shortcodes and of a template's tags: they stay as they are, and are named.

words_of_tag('{{< button tooltip="The big dog" >}}')  # [Untranslated("The big dog", "text in a shortcode")]
"""

from __future__ import annotations

import re

from dragoman.documents.document import Untranslated
from dragoman.documents.markdown.inline import shown_in
from dragoman.documents.shortcodes import TWO_WORDS

_INSIDE = r"(?:[^{}]|\{[^{}]*\}|\{\{[^{}]*\}\})*"
_TAG = re.compile(rf"\{{\{{[<%]{_INSIDE}[>%]\}}\}}|\{{%{_INSIDE}%\}}|\{{\{{(?![<%])[^{{}}]*+\}}\}}")
_NAME = re.compile(r"\{(?:\{[<%]|%-?)\s*+(?!end)([\w-]++)")
_STRING = re.compile(
    r"(?:(?<![\w-])([\w-]++)\s*+=\s*+)?+"
    r"(?:\"((?:[^\"\\\n]|\\.){0,300}+)\"|'((?:[^'\\\n]|\\.){0,300}+)'|`([^`\n]{0,300}+)`)"
)
_NOT_SHOWN = re.compile(r"(?:\A|[_-])(?:class|style|css|ids?|rel|sizes|srcset|allow|src|href|url)\Z", re.IGNORECASE)
"""The end of an argument's name whose value is for programs."""
_CONDITIONS = frozenset(
    ["if", "elsif", "elif", "else", "unless", "assign", "case", "when", "for", "tablerow", "extends", "block", "import",
     "from", "set", "ref", "relref", "with", "load", "macro", "call", "filter", "cycle", "regroup", "liquid", "echo",
     "capture", "raw", "comment", "layout", "autoescape"]
)  # fmt: skip
"""Tags whose strings are names, addresses and values that a program compares."""
_UNQUOTED = re.compile(r"include|render|partial|asset|static|gist|post_|code|highlight|url|link|img|image|blocktrans")
"""What the names of tags begin with whose words without quotes are files, names and options."""
_CONJUNCTIONS = frozenset(["and", "or", "und", "oder", "et", "ou", "och", "и", "или", "和", "或"])
"""What stands before the closing sign where a sentence mentions both signs, and at the end of no code."""


def words_of_mention(code: str) -> list[Untranslated]:
    """Return what stands between two signs of a template that a sentence mentions, such as ``{{ begins it and }}``."""
    words = code.split()
    is_mention = len(words) > 2 and words[-2].lower() in _CONJUNCTIONS
    return [Untranslated(" ".join(words), "text in a shortcode")] if is_mention else []


def words_of_tag(tag: str) -> list[Untranslated]:
    """Return the arguments of a shortcode or a tag that may be text and are not translated."""
    name = _NAME.match(tag)
    if name is None:
        return words_of_mention(tag)
    if name[1] in _CONDITIONS:
        return []
    arguments = "".join(part for part in shown_in(tag) if isinstance(part, str))[name.end() :]
    strings = list(_STRING.finditer(arguments))
    values = [match[match.lastindex or 0] for match in strings if not (match[1] and _NOT_SHOWN.search(match[1]))]
    if tag.startswith("{%") and not _UNQUOTED.match(name[1]):
        values.append(_STRING.sub(" ", arguments).strip("-%} \n"))
    return [Untranslated(value, "text in a shortcode") for value in values if TWO_WORDS.search(value)]


def words_of_tags(source: str) -> list[Untranslated]:
    """Return those of all shortcodes and tags in a source."""
    return [words for match in _TAG.finditer(source) for words in words_of_tag(match[0])]
