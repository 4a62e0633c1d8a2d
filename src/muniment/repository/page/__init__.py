"""The search page: with a browser, people sign in, search, read objects, and save searches. It also works without
JavaScript.
"""
