"""The suites over engines, on a real OpenSearch, and what only that engine does."""
