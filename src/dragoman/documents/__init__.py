"""Documents that keep their shape: text units out of a file, and translations back into it.

A format is one file here, which keeps the ``Protocol`` ``document.Format``: it cuts a file into what stays as it is and
units of text. Each unit is translated alone, wherever it stands, so that the same sentence has the same translation in
every format.
"""
