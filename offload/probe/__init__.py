"""What does a card show that has no profile yet? The draft of one."""
