"""ktls-offload: use, trust and certify TLS offload in a network card; this file holds the version only."""

__version__ = "0.1.0"
