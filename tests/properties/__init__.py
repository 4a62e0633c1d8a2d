"""Laws, with Hypothesis."""
