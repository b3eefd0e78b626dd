"""Random TLS captures, good and damaged, made without code of offload/wire: the independent witness."""
