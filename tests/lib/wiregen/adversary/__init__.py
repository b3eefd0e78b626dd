"""A hostile card against the wire verifier: edits of a good capture, and a third party's word on each."""
