"""The labs of a parallel run: how many work at once, and which one runs which test next."""
