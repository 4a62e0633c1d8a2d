"""The change log: each change writes to it, followers read it, and callers see its positions only in sealed form."""
