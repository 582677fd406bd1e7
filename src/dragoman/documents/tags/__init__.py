"""Places of tags, cuts and spaces in a translation."""
