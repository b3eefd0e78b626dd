"""How does a program get a TLS socket: by the kernel, or else by stunnel?"""
