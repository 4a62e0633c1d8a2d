"""The front door: the pages and the health that a process answers whichever halves it runs."""
