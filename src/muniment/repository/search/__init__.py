"""Search: queries, the index, its agent, and the pages of hits."""
