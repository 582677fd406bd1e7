"""Packages of Argos Translate and LibreTranslate, written and read."""
