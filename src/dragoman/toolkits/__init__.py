"""Other programs that run such models, and our own search: a folder for each.

A folder has ``write.py`` (our model in its format), ``read.py`` (its model as a run of ours) and ``search.py``
(its search on our segments), each only where it makes sense. The files beside the folders name no program.
"""

FORMATS = ("ctranslate2", "huggingface", "argos", "page", "onnx")
"""Folders with a ``write.py``, which is imported when it is needed."""

NAMES = ("torch", "ctranslate2")
"""Engines that a user can choose; here, where nothing is loaded for them. Their classes are in ``choice``."""
