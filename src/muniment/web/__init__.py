"""The HTTP that both halves share: reading bodies within caps, writing answers, transport rules."""
