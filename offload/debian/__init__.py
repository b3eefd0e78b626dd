"""Debian's packages and kernels: fetched, verified, unpacked, kept in the cache."""
