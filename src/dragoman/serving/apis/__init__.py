"""HTTP APIs of the server, one file each."""
