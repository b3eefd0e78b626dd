"""What does a byte cost in instructions? Counted in a VM whose clock counts them."""
