"""The scope of a search: what its caller may see, and in which folders."""
