"""Kinds that use addresses besides pools: they are read where they are served, and never written."""
