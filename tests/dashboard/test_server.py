"""The dashboard's process: its address, its port and what it tells nobody."""

import socket
from pathlib import Path

import pytest
import streamlit
from streamlit import config

from headway.dashboard import server
from headway.dashboard.palette import LOOKS, Look, theme_options
from headway.metrics import CATEGORIES
from headway.settings import SettingError


def test_a_free_port_is_kept() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]

    assert server.choose_port("127.0.0.1", free) == free


def test_a_busy_port_is_replaced_or_where_it_was_given_refused() -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        taken = busy.getsockname()[1]

        assert server.choose_port("127.0.0.1", taken) not in (0, taken)
        with pytest.raises(SettingError, match=f"port {taken} of '127.0.0.1' is held by process"):
            server.choose_port("127.0.0.1", taken, fixed=True)


def test_an_address_of_another_machine_is_refused_with_the_next_step() -> None:
    with pytest.raises(SettingError, match="give an address of this machine with --host"):
        server.choose_port("192.0.2.1", 8752, fixed=True)


def test_the_server_reports_to_nobody_and_shows_no_traceback() -> None:
    options = server.options("127.0.0.1", 1234)

    assert options["browser.gatherUsageStats"] is False
    assert options["client.showErrorDetails"] == "none"
    assert options["server.address"] == "127.0.0.1"


@pytest.mark.parametrize(("path", "first"), [("fleet", "PlotlyChart"), ("health", "Html")])
def test_what_draws_a_page_is_there_to_be_loaded_beforehand(path: str, first: str) -> None:
    modules = server._modules(path)

    assert modules[0].startswith(f"./static/js/{first}.")
    for module in modules:
        assert (Path(streamlit.__file__).parent / "static" / module).is_file()


@pytest.mark.slow
def test_streamlit_knows_every_option_that_it_is_given() -> None:
    config.get_config_options()
    known = config._config_options_template

    for name, value in server.options("127.0.0.1", 1234).items():
        assert name in known, name
        if known[name].type is bool:
            assert isinstance(value, bool), name


def test_both_looks_carry_the_categories_colours() -> None:
    options = theme_options()

    for look in LOOKS:
        for category in CATEGORIES.values():
            assert category.colour in options[f"theme.{look}.chartCategoricalColors"]


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_text_and_links_stand_out_from_their_background(look: Look) -> None:
    for ground in (look.background, look.panel):
        assert contrast(look.text, ground) >= 7
        assert contrast(look.accent, ground) >= 4.5


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of WCAG 2."""
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    channels = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = (
        channel / 12.92 if channel <= 0.03928 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
