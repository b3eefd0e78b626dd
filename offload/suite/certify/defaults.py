"""What a run of certify is if nobody asks for anything else."""

KERNEL, NIC = "6.1", "connectx-6-dx"
CARDS = ("nicsim", "mlx5")  # the kinds of lab with a simulated card, the default first
DEPTHS = ("quick", "standard", "deep")  # what pytest's --depth takes, the default first
