"""A trained model behind HTTP: one batcher between the routes and the translator, and the APIs that clients speak."""
