"""Scenarios: a space of conditions as data, arrays of them that cross all pairs, and what was crossed."""
