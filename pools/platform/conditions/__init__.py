"""Conditions that need attention: detected, stored as notices, and sent to webhook targets."""
