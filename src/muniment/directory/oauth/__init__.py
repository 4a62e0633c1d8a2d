"""OAuth 2.0: grants and their tokens, who may have them, and what a token says."""
