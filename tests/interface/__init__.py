"""The wire, clause by clause: the number in a file's name is the clause of the given interface."""
