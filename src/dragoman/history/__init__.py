"""What runs did: a list of them, and their curves, settings and translations side by side."""
