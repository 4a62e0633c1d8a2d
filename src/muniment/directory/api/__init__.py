"""The directory's addresses.

``routes`` lists them all. The other modules read and answer the requests, and describe them for the API document.
"""
