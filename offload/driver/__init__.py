"""How does a Debian kernel get a driver with TLS offload? Builds Debian's source with the missing option."""
