from pathlib import Path

import dragoman

Path("page.html").write_text("<p>The <b>clever</b> teacher reads the book.</p>", encoding="utf-8")
translator = dragoman.Translator.load("runs/first")
report = dragoman.translate_document(translator, "page.html", "seite.html", beam_size=5)
print(report.found, report.translated, [(left.text, left.why) for left in report.left])
