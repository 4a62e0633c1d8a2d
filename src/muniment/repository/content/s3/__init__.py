"""Content in a store of objects in the network, by the interface of S3."""
