"""The embedded lab: a stock Debian kernel, booted in QEMU, becomes DUT, wire and peer."""
