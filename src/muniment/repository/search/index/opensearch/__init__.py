"""OpenSearch: the engine for an index that several machines share; it holds the words that we make."""
