"""What is known of languages: codes, names, scripts, words, sentences, numbers."""
