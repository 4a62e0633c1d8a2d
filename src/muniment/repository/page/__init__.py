"""The search page: with a browser, people sign in, search, read objects, and save searches.

The page also works without JavaScript.
"""
