"""Which results may be published? A site of signed archives."""
