"""Damage to a good capture: each kind, and what a verifier must answer."""
