"""The front door: what a process answers whichever halves it runs, its pages and its health."""
