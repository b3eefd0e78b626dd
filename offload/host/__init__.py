"""One small interface to the machines of a bench: base (the interface), local, vm, ssh."""
