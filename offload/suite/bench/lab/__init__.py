"""A bench of real hosts: its lab file, the way to its hosts, and what upstream's tools want of it."""
