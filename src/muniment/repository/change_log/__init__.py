"""The change log: each change writes to it, followers read it, and callers get its positions sealed."""
