"""The store: what a repository holds, who may use it, and what has changed."""
