"""Make TLS flow between DUT and peer: certificates, the programs at both ends, and payload."""
