"""HTTP for both halves: read bodies within caps, write answers, and enforce the rules of transport."""
