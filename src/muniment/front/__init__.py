"""The front door: the pages and the reports on its health that a process serves, whichever halves it runs."""
