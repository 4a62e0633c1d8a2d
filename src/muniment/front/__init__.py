"""The front door: the pages that every process serves, whichever halves it runs, and the reports on its health."""
