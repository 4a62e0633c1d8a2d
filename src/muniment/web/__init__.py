"""HTTP for both halves: bodies within caps, answers, and the rules of transport."""
