"""A search from the caller's question to a page of hits that the database vouches for."""
