"""A content store in the network that speaks S3."""
