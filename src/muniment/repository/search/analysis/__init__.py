"""Analysis: the words of a text and of a query, their variants, and excerpts."""
