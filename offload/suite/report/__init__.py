"""Say what the results mean: events -> criteria -> verdict -> report.json, report.html, terminal summary."""
