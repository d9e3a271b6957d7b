"""Addresses that objects of a cluster use: parsers of the kinds that are read and never written."""
