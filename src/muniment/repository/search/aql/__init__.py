"""The structured query language (AQL): a query tree, and a reader for each spelling of a query."""
