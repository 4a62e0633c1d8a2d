"""The addresses of ACLs and permission sets."""
