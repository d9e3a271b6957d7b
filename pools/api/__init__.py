"""REST under /api/v1/: views read a request, call one service, shape the answer (docs/api.md)."""
