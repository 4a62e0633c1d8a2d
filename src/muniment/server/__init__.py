"""The server's processes: started and watched together, each with its work, its listeners and its log."""
