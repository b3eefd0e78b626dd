"""How is offload switched on and off, kept over a reboot, and put back?"""
