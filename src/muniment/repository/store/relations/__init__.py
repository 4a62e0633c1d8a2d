"""Which objects are related, and what do people say about an object? Relations, their types, and comments."""
