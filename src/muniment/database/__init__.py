"""The databases: connections, transactions, and whose turn it is to use them."""
