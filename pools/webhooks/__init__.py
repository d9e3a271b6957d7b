"""Admission webhooks (admission.k8s.io/v1), which API servers call before they store an object.

A review reads the register and changes nothing: its transaction is read-only and rolled back.
"""
