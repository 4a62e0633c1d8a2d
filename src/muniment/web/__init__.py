"""The HTTP that both halves share: bodies read with caps, answers in the interface's shape, transport rules."""
