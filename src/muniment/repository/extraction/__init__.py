"""What does this file say? Each file is read in a process of its own that can do nothing but read it."""
