"""What a run of certify is if nobody asks for anything else."""

KERNEL, NIC = "6.1", "connectx-6-dx"
DEPTHS = ("quick", "standard", "deep")  # what pytest's --depth takes, the default first
