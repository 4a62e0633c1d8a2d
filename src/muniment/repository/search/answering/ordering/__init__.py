"""The order of hits: sorted, or scrolled through."""
