"""Constituency parsing (section 6.3 of the paper): trees read, written, linearised, rebuilt and compared."""
