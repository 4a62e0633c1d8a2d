"""Who calls? What a request shows to prove it, and how the directory is asked whether that holds now."""
