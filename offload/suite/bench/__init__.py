"""Where is tested: the embedded lab in a VM, or real hosts."""
