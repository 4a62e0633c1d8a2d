"""The ground: time, files, locks, names, caches and refusals."""
