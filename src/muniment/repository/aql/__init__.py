"""The structured query language (AQL): one query tree, and a reader for each way of writing it."""
