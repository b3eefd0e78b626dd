"""Which known kernel bugs does this kernel have, and which fits a failure? The data is errata.yaml."""
