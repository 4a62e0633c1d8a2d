"""Questions: what every engine is asked, and what is made of its answers."""
