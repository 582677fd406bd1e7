"""Templates, scripts and styles of all HTML pages: each page is one file that needs no network."""
