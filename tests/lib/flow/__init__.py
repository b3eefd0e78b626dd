"""Traffic between DUT and peer: connections, files, migrations, what they cost, and the proof of each."""
