"""What was on the wire, and is it what a correct sender would have put there? The contract: wire.md."""
