"""What does a statement in DQL ask for? Only ``SELECT`` statements are offered, so no statement writes."""
