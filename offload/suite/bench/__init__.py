"""What do the tests run on? The embedded lab in a VM, or real hosts."""
