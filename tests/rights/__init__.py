"""Rights that end while a request is under way."""
