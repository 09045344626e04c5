"""What a page asked for and complained about."""

from playwright.sync_api import ConsoleMessage, Page

_OWN = ("data:", "blob:")


class Watch:
    """Listens to a page from its first request on."""

    def __init__(self, page: Page, address: str) -> None:
        """Listen; what begins with `address` is asked of the dashboard itself."""
        self.outside: list[str] = []
        self.complaints: list[str] = []
        self._address = address
        page.on("request", lambda request: self._asked(request.url))
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _asked(self, url: str) -> None:
        if not url.startswith((self._address, *_OWN)):
            self.outside.append(url)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(message.text)
