"""What every handler of the collector's HTTP needs: the service, the body, an error as JSON."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import JSONResponse

from headway.collector.otlp.bodies import TooLarge
from headway.collector.service import Service


def service_of(request: Request) -> Service:
    """Return the service behind a request."""
    service: Service = request.app.state.service
    return service


def error_answer(
    status: int, error: object, next_step: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    """Return an error as every client expects it: what is wrong, and what to do."""
    content = {"error": str(error), "next": next_step}
    return JSONResponse(content, status_code=status, headers=headers)


def bad_request(error: object, next_step: str) -> JSONResponse:
    """Return the answer to a request that cannot be understood."""
    return error_answer(HTTPStatus.BAD_REQUEST, error, next_step)


async def body_of(request: Request, limit: int) -> bytes:
    """Return the body of a request.

    Raises:
        TooLarge: it holds more than `limit` bytes.
    """
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise TooLarge(f"the body holds more than {limit} bytes")
        chunks.append(chunk)
    return b"".join(chunks)
