"""Imports of any kind: drafts of what was uploaded, their commit and undo, in the request or by a worker.

A kind is a model derived from `pools.models.imports.Import` and a class derived from `lifecycle.Imports`.
"""
