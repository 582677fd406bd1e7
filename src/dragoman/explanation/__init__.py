"""What a model looks at, and how figures look.

``trace`` translates a text and keeps every attention weight and candidate; ``outputs`` writes what came of it, as a
page (``page``) or figures (``attention``). ``figures`` draws heat maps, curves and bars for everybody, as ``style``
wants it.
"""
