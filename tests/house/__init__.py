"""Is it still the house we drew? The rules of ARCHITECTURE.md and CONTRIBUTING.md, as tests."""
