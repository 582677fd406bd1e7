"""The pages of the laboratory: one self-contained HTML file for each experiment, and an index; no script."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.files import write_text
from dragoman.lab import EXPERIMENTS
from dragoman.lab.report import Section, Table, read_record

WORDS = {True: "holds", False: "does not hold", None: "open"}

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1a1a1a; --soft: #555; --line: #e2e2e2; --card: #fff;
        --good: #00629b; --bad: #a63c00; --pad: 0; }
@media (prefers-color-scheme: dark) { :root { --paper: #16181b; --ink: #e8e8e6; --soft: #a8a8a4; --line: #34373b;
        --card: #fbfbfa; --good: #6cb8ea; --bad: #f2935c; --pad: .6rem; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 5rem; max-width: 46rem; background: var(--paper); color: var(--ink);
       font: 1.05rem/1.6 Charter, "Bitstream Charter", "Sitka Text", Cambria, Georgia, serif; }
nav, .facts, table, figcaption, .verdict b { font-family: system-ui, sans-serif; }
nav { font-size: .9rem; margin-bottom: 2rem; }
a { color: var(--good); }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0; }
.claim { font-size: 1.2rem; line-height: 1.4; color: var(--soft); font-style: italic; margin: .4rem 0 1.5rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 2.75rem 0 .5rem; }
p { margin: .6rem 0; }
code { font: .88em ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.quick { border: 1px solid var(--bad); padding: .5rem .9rem; border-radius: .3rem; }
ul.verdict { list-style: none; padding: 0; margin: 1rem 0; border-top: 1px solid var(--line); }
ul.verdict li { padding: .55rem 0; border-bottom: 1px solid var(--line); display: grid;
                grid-template-columns: 6.5rem 1fr; gap: .2rem 1rem; }
ul.verdict b { font-size: .85rem; line-height: 1.8; color: var(--soft); }
ul.verdict b.holds { color: var(--good); }
ul.verdict b.fails { color: var(--bad); }
ul.verdict span { display: block; color: var(--soft); font-size: .93rem; }
figure { margin: 1.5rem 0 2rem; }
figure img { max-width: 100%; height: auto; display: block; padding: var(--pad); border-radius: .3rem;
             background: var(--card); }
figcaption { font-size: .88rem; line-height: 1.45; color: var(--soft); margin-top: .5rem; }
.wide { overflow-x: auto; margin: 1.25rem 0 0; }
table { border-collapse: collapse; font-size: .88rem; line-height: 1.4; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem 1.1rem .3rem 0; text-align: right; border-bottom: 1px solid var(--line); font-weight: 400;
         vertical-align: top; }
th.text, td.text { text-align: left; }
thead th { color: var(--soft); border-bottom-color: var(--soft); }
.facts { color: var(--soft); font-size: .85rem; line-height: 1.5; margin-top: 3.5rem; padding-top: .75rem;
         border-top: 1px solid var(--line); }
@media print { body { max-width: none; } nav { display: none; } figure, li { break-inside: avoid; } }
@media (max-width: 30rem) { ul.verdict li { grid-template-columns: 1fr; } }
"""


def write_page(folder: Path, record: dict[str, Any], sections: Sequence[Section]) -> None:
    """Write ``folder/index.html``; the figures' SVG files lie there already, and are put inside."""
    name = record["experiment"]
    body = [
        '<nav><a href="../index.html">All experiments</a></nav>',
        f"<h1>{html.escape(name.capitalize())}</h1>",
        f'<p class="claim">{html.escape(record["claim"])}.</p>',
        _quick(record["quick"]),
        _verdict(record["verdict"]),
        *(_section(folder, section) for section in sections),
        f'<p class="facts">{html.escape(_facts(record))}<br>All numbers: <a href="numbers.json">numbers.json</a></p>',
    ]
    write_text(folder / "index.html", _document(f"{name} - dragoman lab", body))


def write_index(out: Path) -> None:
    """Write ``out/index.html`` from the numbers that lie below ``out``."""
    records = {name: read_record(out / name) for name in EXPERIMENTS}
    decided = [claim["holds"] for record in records.values() if record is not None for claim in record["verdict"]]
    body = [
        "<h1>The laboratory</h1>",
        '<p class="claim">What "Attention Is All You Need" claims, and what is said of it, measured.</p>',
        f"<p>{decided.count(True)} of {len(decided)} statements hold, {decided.count(False)} do not, "
        f"{decided.count(None)} are open.</p>",
    ]
    for name, claim in EXPERIMENTS.items():
        record = records[name]
        if record is None:
            made = f"not made yet: <code>dragoman lab {name}</code>"
            body.append(f"<h2>{name.capitalize()}</h2><p>{html.escape(claim)}: {made}.</p>")
        else:
            link = f'<a href="{name}/index.html">{name.capitalize()}</a>'
            body += [f"<h2>{link}</h2><p>{html.escape(claim)}.</p>", _quick(record["quick"])]
            body.append(_verdict(record["verdict"]))
    write_text(out / "index.html", _document("dragoman lab", body))


def _document(title: str, body: Sequence[str]) -> str:
    return "\n".join([
        "<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">",
        f"<title>{html.escape(title)}</title>", f"<style>{_STYLE}</style>", "</head>", "<body>",
        *filter(None, body), "</body>", "</html>", "",
    ])  # fmt: skip


def _quick(quick: bool) -> str:
    return (
        '<p class="quick">A quick run: small sizes, one seed. It shows that all works and claims nothing.</p>' * quick
    )


def _verdict(verdict: Sequence[dict[str, Any]]) -> str:
    rows = "".join(
        f'<li><b class="{ {True: "holds", False: "fails", None: "open"}[claim["holds"]] }">{WORDS[claim["holds"]]}</b>'
        f"<div>{_words(claim['text'])}<span>{_words(claim['figures'])}</span></div></li>"
        for claim in verdict
    )
    return f'<ul class="verdict">{rows}</ul>' if rows else ""


def _section(folder: Path, section: Section) -> str:
    parts = [f"<h2>{_words(section.heading)}</h2>"] if section.heading else []
    texts = [section.text] if isinstance(section.text, str) else section.text
    parts += [f"<p>{_words(text)}</p>" for text in texts if text]
    caption = f"<figcaption>{_words(section.caption)}</figcaption>" if section.caption else ""
    table = _table(section.table) if section.table is not None else ""
    if section.figure is not None:
        image = base64.b64encode((folder / f"{section.name}.svg").read_bytes()).decode()
        alt = html.escape(section.caption or section.heading)
        parts.append(f'<figure><img alt="{alt}" src="data:image/svg+xml;base64,{image}">{caption}</figure>{table}')
    elif table:
        parts.append(f"<figure>{table}{caption}</figure>")
    return "\n".join(parts)


def _table(table: Table) -> str:
    numeric = [
        all(isinstance(row[i], int | float | None) for row in table.rows) if table.rows else False
        for i in range(len(table.columns))
    ]
    kinds = ["" if is_number else ' class="text"' for is_number in numeric]
    head = "".join(f"<th{kind}>{_words(str(name))}</th>" for kind, name in zip(kinds, table.columns, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{kind}>{_words(_cell(cell))}</td>' for kind, cell in zip(kinds, row, strict=True))}</tr>"
        for row in table.rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: Any) -> str:
    """Text as it is; whole numbers with commas; others with three digits that count."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"
    return str(value)


def _words(text: str) -> str:
    """Text with ``code`` between backticks, and addresses as links; all else escaped."""
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
    address = r"https?://(?:&amp;|[^\s<>()&\"'])*(?:&amp;|[^\s<>().,;&\"'])"  # it goes into an attribute
    return re.sub(address, lambda found: f'<a href="{found[0]}">{found[0]}</a>', escaped)


def _facts(record: dict[str, Any]) -> str:
    machine = record["machine"]
    where = machine.get("gpu") or machine["cpu"]
    given = "".join(f" Made with --{option}." for option in ("config", "run") if record[option] is not None)
    return (
        f"{record['date']}: {record['seconds']:,.0f} s on {where}, {machine['threads']} of {machine['cores']} threads, "
        f"torch {machine['torch']}, Python {machine['python']}.{given}"
    )
