"""What was captured and what it proves: frames, records, ESP, and who holds keys."""
