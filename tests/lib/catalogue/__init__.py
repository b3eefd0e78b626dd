"""The suite run as a program against good and bad cards, and the tables of its results."""
