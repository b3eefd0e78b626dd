"""Which programs of Debian does a lab have that nobody installed?"""
