"""Which objects mean what a question means? Texts are embedded in the background, and compared in a search."""
