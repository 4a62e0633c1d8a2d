"""Long rounds: attacks, faults, and many more of what the other tests do once."""
