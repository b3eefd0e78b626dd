"""What does TLS cost by arm: in user space, in software, on the card, and plain TCP?"""
