"""The certification suite: lab, traffic, wire proof, report. No room of the host tool imports it."""
