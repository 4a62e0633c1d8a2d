"""OAuth 2.0: issue, verify and revoke tokens."""
