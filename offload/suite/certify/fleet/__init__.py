"""How are many benches certified at once?"""
