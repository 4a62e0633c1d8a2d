"""What is the text of this file? Each file is read in a process of its own that can do nothing else."""
