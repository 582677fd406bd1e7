"""Constituency trees (section 6.3 of the paper) as pure functions: read, written, as symbols and back, compared."""
