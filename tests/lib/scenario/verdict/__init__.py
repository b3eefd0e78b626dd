"""What a scenario proves: the judgement of each connection, its invariants, and whom a failure blames."""
