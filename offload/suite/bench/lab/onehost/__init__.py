"""How is one host with two ports a bench?"""
