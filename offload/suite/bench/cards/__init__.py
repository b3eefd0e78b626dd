"""Which simulated cards has the lab: how they are built, and which faults they are given."""
