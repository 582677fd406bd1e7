"""Who searches: torch or CTranslate2."""
