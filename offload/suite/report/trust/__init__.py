"""Is a result as it was left, and who stands behind it?"""
