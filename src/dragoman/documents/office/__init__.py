"""Office files of OOXML and OpenDocument."""
