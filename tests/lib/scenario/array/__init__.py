"""Covering arrays: what has to be crossed, rows that cross it, and the same with fewer and quicker rows."""
