"""Damage to a good capture: each kind, and what a verifier has to say to it."""
