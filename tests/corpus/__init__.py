"""Does a search find what a person would expect? Cases as data, each folder a small world with its searches."""
