"""The service of the instructor's page: JupyterHub starts it, and lets in the instructor alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from urllib.parse import urlsplit

from jupyterhub.services.auth import HubOAuthCallbackHandler, HubOAuthenticated
from tornado.httpclient import AsyncHTTPClient
from tornado.web import Application, RequestHandler, authenticated

from bookkit.hub.page import page
from bookkit.hub.room import load
from bookkit.hub.seen import look


class Board(HubOAuthenticated, RequestHandler):
    """The page, for those whom JupyterHub lets use this service: its admins."""

    @authenticated
    async def get(self) -> None:
        """Write the page."""
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        self.write(page(look(load()), await servers(), time.time()))


async def servers() -> dict[str, str]:
    """Ask the hub whose servers run or start."""
    asked = await AsyncHTTPClient().fetch(
        f"{os.environ['JUPYTERHUB_API_URL']}/users?state=active&limit=200",
        headers={
            "Authorization": f"token {os.environ['JUPYTERHUB_API_TOKEN']}",
            "Accept": "application/jupyterhub-pagination+json",
        },
    )
    users = json.loads(asked.body)["items"]
    states = {user["name"]: user.get("servers", {}).get("", {}) for user in users}
    return {name: "runs" if state.get("ready") else "starts" for name, state in states.items() if state}


async def main() -> None:
    """Serve until the hub ends us."""
    prefix = os.environ["JUPYTERHUB_SERVICE_PREFIX"]
    handlers = [(prefix, Board), (prefix + "oauth_callback", HubOAuthCallbackHandler)]
    where = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
    Application(handlers, cookie_secret=os.urandom(32)).listen(where.port, where.hostname)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C, or the hub ends
        asyncio.run(main())
