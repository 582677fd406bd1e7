"""Who searches: torch or CTranslate2, behind one Protocol; what each receives and cannot do."""
