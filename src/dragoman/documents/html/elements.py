"""Elements and attributes of HTML: which end a sentence, hold no text, close others, and what readers see of a tag."""

from __future__ import annotations


def names(text: str) -> frozenset[str]:
    """Return the names that a text lists, separated by spaces."""
    return frozenset(text.split())


CODE = names(
    "code pre kbd samp var tt listing xmp plaintext math-renderer mjx-container mat-icon md-icon mwc-icon v-icon"
)
"""Elements whose content is not translated: code, formulas of programs, and icons by their names."""

_KEPT = names(
    "blob-code blob-code-inner react-file-line CodeMirror-line cm-line ace_line view-line crayon-line "
    "syntaxhighlighter member-signature type-signature sig-object memname "
    "arithmatex kdmath katex katex-display MathJax MathJax_Display MathJax_Preview MathJax_SVG MathJax_SVG_Display "
    "MathJax_CHTML mjx-chtml "
    "material-icons material-icons-outlined material-icons-round material-icons-sharp material-icons-two-tone "
    "material-symbols-outlined material-symbols-rounded material-symbols-sharp"
)
"""Classes of code in no element for code: lines of GitHub and editors, signatures of Javadoc, Sphinx and Doxygen.

Also those of formulas, and of icons, whose text is a name that their font draws."""

BLOCKS = names(
    "address applet area article aside audio base blockquote body br button canvas caption center col colgroup "
    "datalist dd details dialog dir div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 "
    "h5 h6 head header hgroup hr html iframe input keygen label legend li link listing main marquee menu menuitem "
    "meta nav noembed noframes noscript object ol optgroup option p param plaintext pre script search section select "
    "source style summary table tbody td template textarea tfoot th thead title tr track ul video xmp"
)
"""Elements that end a sentence, controls too; all others, unknown ones too, stand inside a sentence."""

IN_SVG = names("title desc text tspan textpath foreignobject mtext")
"""Elements of SVG and MathML that end a sentence."""
TEXT_OF_SVG = names("title desc text foreignobject mtext")
"""Elements of SVG and MathML whose text is translated."""

VOID = names("area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr")
"""Elements that have no closing tag."""

ANNOTATION = names("rt rp rtc")
"""Elements of a ruby that are not its base text."""

_AFTER = {
    **dict.fromkeys(("rb", "rt", "rtc", "rp"), names("rb rt rp")),
    **dict.fromkeys(("td", "th"), names("td th p li option")),
    "li": names("li p"), "dt": names("dt dd p"), "dd": names("dt dd p"), "option": names("option"),
    "optgroup": names("option optgroup"), "tr": names("tr td th p"), "tbody": names("tr td th tbody thead tfoot"),
    "tfoot": names("tr td th tbody thead tfoot"),
}  # fmt: skip
_PARAGRAPH_ENDS = names(
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form h1 h2 h3 "
    "h4 h5 h6 header hgroup hr main menu nav ol p pre search section table ul listing plaintext"
)
SCOPES = names("td th caption table template object applet marquee svg math foreignobject html button")
"""Elements that a closing tag from inside does not close others around."""


def closed_by(name: str) -> frozenset[str]:
    """Return the elements that an opening tag closes if they are the innermost."""
    return _AFTER.get(name) or (frozenset(["p"]) if name in _PARAGRAPH_ENDS else frozenset())


def is_kept(classes: str, following: str) -> bool:
    """True if the text of an element is no words, by its classes: a listing of code, a formula or the name of an icon.

    Args:
        classes: Value of its attribute ``class``.
        following: Source behind its tag: Doxygen's listings are a ``fragment`` of lines, one of slides is not. Pandoc's
            formulas are ``math`` that is ``inline`` or ``display``.
    """
    own = classes.split()
    if "math" in own and (following.startswith(("\\(", "\\[", "$$")) or not {"inline", "display"}.isdisjoint(own)):
        return True
    return not _KEPT.isdisjoint(own) or ("fragment" in own and following.lstrip().startswith('<div class="line"'))


SHOWN = names(
    "abbr alt title placeholder aria-label aria-description aria-roledescription aria-placeholder aria-valuetext label "
    "summary"
)
"""Attributes that a reader sees."""
_BUTTONS = names("submit button reset")
_DESCRIPTIONS = names(
    "description keywords og:title og:description og:site_name og:image:alt twitter:title twitter:description "
    "twitter:image:alt application-name apple-mobile-web-app-title dc.title dc.description"
)


def is_shown(element: str, name: str, others: dict[str, str]) -> bool:
    """True if a reader sees the value of an attribute.

    Args:
        element: Name of its element.
        name: Its name.
        others: All attributes of the tag.
    """
    if name == "value":
        return element == "input" and others.get("type", "").lower() in _BUTTONS
    if name == "content":
        return element == "meta" and (others.get("name") or others.get("property") or "").lower() in _DESCRIPTIONS
    if name == "title" and (element == "style" or "stylesheet" in others.get("rel", "").lower()):
        return False  # the name of a set of styles
    return name in SHOWN and not (name == "abbr" and element not in ("th", "td"))
