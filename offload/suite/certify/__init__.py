"""What are the steps from nothing to a verdict?"""
