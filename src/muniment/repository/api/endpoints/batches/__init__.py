"""The addresses of batches: several requests in one."""
