"""Administration of the directory: what an administrator changes, whoever asks for it."""
