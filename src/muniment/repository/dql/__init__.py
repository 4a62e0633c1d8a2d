"""What does a statement in DQL ask for? A read-only part of the language of the field: select, nothing else."""
