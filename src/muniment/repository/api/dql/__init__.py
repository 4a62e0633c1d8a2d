"""What does a statement in DQL ask for?"""
