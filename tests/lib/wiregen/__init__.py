"""Random TLS captures, good and damaged, made without code of offload/suite/wire: the independent witness."""
