"""Why is TLS not offloaded here? One file per question; the reasons are data (reasons.yaml)."""
