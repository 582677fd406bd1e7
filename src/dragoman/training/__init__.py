"""Training: text files in, a trained model out. ``run`` calls all the others."""
