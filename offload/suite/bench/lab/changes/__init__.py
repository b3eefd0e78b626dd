"""What tests change on real hosts besides TLS features: noted before the change, put back after a kill."""
