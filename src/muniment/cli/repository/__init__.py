"""Commands about the repository: what is held, and how is it found?"""
