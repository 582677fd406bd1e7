"""Facts about languages: codes, names, scripts, words, sentences, numbers."""
