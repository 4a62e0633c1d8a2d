"""Which objects are near in meaning to a question? Texts are embedded in the background, and compared in a search."""
