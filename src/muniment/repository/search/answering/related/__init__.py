"""What else may be meant: suggestions, and documents that are alike."""
