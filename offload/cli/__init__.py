"""Which verb was typed? The table of verbs, their help, completion and the man page."""
