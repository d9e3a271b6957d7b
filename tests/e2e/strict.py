"""Watches every page of a browser context: whatever a page complains of fails the test."""

from typing import Any


class Watched:
    """A browser whose contexts are watched: console, scripts' errors, sub-requests, content policy.

    A status that a test provokes is named in `expected` before: its console line, and the answer.
    """

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._contexts: list[Any] = []
        self.complaints: list[str] = []
        self.expected: set[int] = set()

    def new_context(self, **options: Any) -> Any:
        context = self._browser.new_context(**options)
        context.on("console", self._console)
        context.on("weberror", lambda error: self._complain(error.error, error.page))
        context.on("response", self._response)
        context.on("requestfailed", self._failed)
        self._contexts.append(context)
        return context

    def take(self) -> list[str]:
        """What was complained of since the last time."""
        recent, self.complaints[:] = list(self.complaints), []
        return recent

    def close(self) -> None:
        for context in self._contexts:
            context.close()

    def _complain(self, text: object, page: Any) -> None:
        self.complaints.append(f"{page.url if page else ''}: {text}")

    def _console(self, message: Any) -> None:
        # The browser's line about a failed request repeats what the response says.
        if message.type in {"error", "warning"} and "Failed to load resource" not in message.text:
            self._complain(message.text, message.page)

    def _response(self, response: Any) -> None:
        if response.status >= 400 and response.status not in self.expected:
            self.complaints.append(f"{response.request.url}: {response.status}")

    def _failed(self, request: Any) -> None:
        # Aborted: the page was left, or the answer is a download.
        if "ERR_ABORTED" not in (request.failure or ""):
            self.complaints.append(f"{request.url}: {request.failure}")
