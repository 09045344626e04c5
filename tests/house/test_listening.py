"""A port that is taken is refused with who has it and what to do."""

import errno
import os
import socket

from headway.listening import holder, refused_port


def test_who_listens_on_a_port_is_named_by_its_number_and_name() -> None:
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.create_server((host, 0), family=family) as listener:
            port = listener.getsockname()[1]
            assert (holder(port) or "").startswith(f"process {os.getpid()} (")
        assert holder(port) is None


def test_a_refusal_says_who_has_the_port_or_why_it_cannot_be_used() -> None:
    busy = OSError(errno.EADDRINUSE, "Address already in use")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        said = str(refused_port("127.0.0.1", listener.getsockname()[1], busy))
    assert f"is held by process {os.getpid()} (" in said
    assert said.endswith("; end it, or choose another with --port, 0 for a free one")
    denied = refused_port("127.0.0.1", 80, OSError(errno.EACCES, "Permission denied"))
    assert str(denied) == (
        "port 80 of '127.0.0.1' cannot be used (Permission denied); choose another with --port, "
        "0 for a free one"
    )
