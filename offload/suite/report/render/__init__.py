"""How does a person read a report? The page and the terminal."""
