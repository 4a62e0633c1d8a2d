"""The index: documents go in through the agent, hits come out through one narrow interface."""
