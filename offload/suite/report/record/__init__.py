"""How do results get onto the disk while pytest runs?"""
