"""`doctor --pid`: why a process's connections are not under kernel TLS, or not on the card."""
