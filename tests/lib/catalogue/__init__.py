"""The suite run as a program against good and bad cards, and what is told of it."""
