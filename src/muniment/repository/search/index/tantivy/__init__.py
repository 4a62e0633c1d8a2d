"""The built-in index engine, on Tantivy."""
