"""The HTTP APIs that the server offers, a file each."""
