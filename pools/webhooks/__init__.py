"""What API servers ask before they store an object (admission.k8s.io/v1).

A review reads the register and changes nothing, not even a time of last use: its transaction is
read-only and always rolled back.
"""
