"""What does a report say of active cores?"""
