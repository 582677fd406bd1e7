"""Training: ``loss``, ``schedule``, the loop ``fit``, ``checkpoint`` (what resumes it), ``averaging``, ``log``."""
