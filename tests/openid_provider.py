"""An OpenID provider on loopback that vouches for whoever it is told to, for tests of sign-in."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from served import served

CLIENT, SECRET = "headway", "a secret between two processes of one test"


class Provider:
    """Answers as OpenID Connect says, and signs `person` in without asking."""

    def __init__(self, person: str) -> None:
        self.person = person
        self.asked: list[str] = []
        self._key = RSAKey.generate_key(2048, {"kid": "1"})
        self._nonces: dict[str, str] = {}

    def application(self) -> Starlette:
        """Return its web server."""
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._configuration),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/keys", self._keys),
            ]
        )

    async def _configuration(self, request: Request) -> Response:
        issuer = str(request.base_url).rstrip("/")
        return JSONResponse(
            {
                "issuer": issuer,
                "authorization_endpoint": f"{issuer}/authorize",
                "token_endpoint": f"{issuer}/token",
                "jwks_uri": f"{issuer}/keys",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
            }
        )

    async def _authorize(self, request: Request) -> Response:
        asked = request.query_params
        self.asked.append(asked["scope"])
        code = f"code-{len(self.asked)}"
        self._nonces[code] = asked.get("nonce", "")
        answer = urlencode({"code": code, "state": asked["state"]})
        return RedirectResponse(f"{asked['redirect_uri']}?{answer}")

    async def _token(self, request: Request) -> Response:
        form = await request.form()
        known = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if (
            request.headers.get("authorization") != f"Basic {known}"
            and form.get("client_secret") != SECRET
        ):
            return JSONResponse({"error": "invalid_client"}, status_code=401)
        now = int(time.time())
        claims = {
            "iss": str(request.base_url).rstrip("/"),
            "aud": CLIENT,
            "sub": "4711",
            "email": self.person,
            "nonce": self._nonces[str(form["code"])],
            "iat": now,
            "exp": now + 600,
        }
        token = jwt.encode({"alg": "RS256", "kid": "1"}, claims, self._key)
        return JSONResponse({"access_token": "a", "token_type": "Bearer", "id_token": token})

    async def _keys(self, _: Request) -> Response:
        return JSONResponse({"keys": [json.loads(json.dumps(self._key.as_dict(private=False)))]})


@contextmanager
def provider(person: str) -> Iterator[tuple[Provider, str]]:
    """Serve a provider and yield it with its address."""
    made = Provider(person)
    with served(made.application()) as address:
        yield made, address
