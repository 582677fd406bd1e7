"""A translator in one HTML file, and the search of its scripts in node."""
