"""Layer 4: answers from a store what may be answered, and stores what may be stored (RFC 9111)."""
