"""The properties of objects: their kinds, their values and how these are stored, and which values are allowed."""
