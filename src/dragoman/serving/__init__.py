"""Serves trained models over HTTP: APIs, a translation page, and one batcher for the sentences of all requests."""
