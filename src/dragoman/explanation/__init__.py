"""Explanations of a translation, and the look of all figures.

    explanation = explain(translator, "A dog runs.")  # every attention weight, and the candidates of each step
    explanation.save("explanation.html")              # or a figure (.svg, .png, .pdf), or a folder for all of them

``explain`` runs the model and returns an ``Explanation``: a ``trace.Trace`` that can be saved. ``outputs`` writes a
trace as a page (``page``) or figures (``attention``). ``figures`` draws heat maps, curves and bars for the whole
project in the look of ``style``.
"""
