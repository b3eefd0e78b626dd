"""Random TLS captures, good and damaged, made without any code of offload/wire: the independent witness."""
