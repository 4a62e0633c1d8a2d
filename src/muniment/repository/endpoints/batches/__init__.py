"""The address of batches: several requests in one."""
