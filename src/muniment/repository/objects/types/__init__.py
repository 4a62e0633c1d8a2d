"""The types of objects: which there are, how they are changed, and what they ask of properties."""
