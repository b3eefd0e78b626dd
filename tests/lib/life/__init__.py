"""Connections held open at both ends: how they begin, live together and end."""
