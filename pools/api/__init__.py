"""REST API below /api/v1/ (docs/api.md): views parse a request, call one service, build the response."""
