"""The types of objects and their properties: which there are, how they are changed, and which values forms offer."""
