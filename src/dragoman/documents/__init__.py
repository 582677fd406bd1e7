"""Documents that keep their shape: text units out of a file, and translations back into it.

A format is one file here that follows the ``Protocol`` ``document.Format`` and stands in the list ``formats.FORMATS``.
It cuts a file into units of text and the source between them, which keeps its bytes. Each unit is translated on its
own, so the same sentence has the same translation in every format.
"""
