"""How many cores were busy, and how sure is a ratio?"""
