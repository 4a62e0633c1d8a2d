"""The repository half: it holds typed objects with content, and finds them by full-text search."""
