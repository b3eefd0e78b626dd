"""Which connections are under kernel TLS, and does a card work for them now?"""
