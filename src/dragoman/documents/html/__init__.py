"""Pages: HTML by the rules of its standard, cut into units."""
