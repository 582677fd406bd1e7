"""Translation of text to text."""
