"""CTranslate2: its model folders, written and read, and its search."""
