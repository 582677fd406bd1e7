"""Hugging Face transformers: Marian and Pegasus models, written and read, and their search."""
