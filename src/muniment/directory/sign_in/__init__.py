"""Sign users in: check passwords at the gate, pause sign-in after wrong ones, and issue tickets to browsers."""
