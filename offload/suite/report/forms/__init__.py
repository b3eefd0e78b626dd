"""Which other tools read a report, and in which form?"""
