"""Conditions that somebody should know of: found, kept as notices, told to webhooks."""
