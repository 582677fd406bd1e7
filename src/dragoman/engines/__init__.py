"""Who searches: torch or CTranslate2, behind one Protocol; what each receives and cannot do."""

NAMES = ("torch", "ctranslate2")
"""Of all engines; here, where nothing is loaded for them. Their classes are in ``choice``."""
