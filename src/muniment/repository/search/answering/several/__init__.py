"""One search of several repositories."""
