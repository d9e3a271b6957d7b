"""Conditions: evaluated by the scheduler, stored as alerts, and sent to webhook targets."""
