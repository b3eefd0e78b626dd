"""How frames on the wire are impaired: by rules, by netem, and what is put in place of the bridge for it."""
