"""The directory by REST: what administrators' programs call, in two dialects of JSON (docs/interface.md, ours 23)."""
