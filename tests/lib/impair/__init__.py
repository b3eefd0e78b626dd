"""What a test does to the path of a connection: impairment rules, loss, tampering, other links, MTU."""
