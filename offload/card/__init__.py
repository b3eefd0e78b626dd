"""What is known of a card, and what does the kernel show of it? Profiles, interfaces and counters."""
