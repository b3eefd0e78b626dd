"""What a test stands on: labs and hosts, their needs, the TLS switch, and pytest plug-ins."""
