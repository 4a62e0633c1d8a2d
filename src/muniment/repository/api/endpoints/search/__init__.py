"""The addresses that search: searches, facets, suggestions, explanations and DQL."""
