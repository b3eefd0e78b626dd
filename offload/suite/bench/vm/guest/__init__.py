"""What runs inside the VM, on nothing but the distribution's Python; imports only from here."""
