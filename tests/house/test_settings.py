"""Settings: who wins, and what a value that does not fit says."""

from pathlib import Path

import pytest

from headway.settings import (
    ALIASES,
    SETTINGS,
    AgentSettings,
    ClientSettings,
    CollectorSettings,
    RecorderSettings,
    SettingError,
    Settings,
    load,
    options,
    sources,
    unread_variables,
)


def config(folder: Path, text: str) -> dict[str, str]:
    path = folder / "headway.toml"
    path.write_text(text, encoding="utf-8")
    return {"HEADWAY_CONFIG": str(path)}


def test_argument_beats_variable_beats_file_beats_default(tmp_path: Path) -> None:
    file = config(tmp_path, "[collector]\nport = 3\n")
    variable = {"HEADWAY_COLLECTOR_PORT": "2"}

    assert load(CollectorSettings, {"port": 1}, {**file, **variable}).port == 1
    assert load(CollectorSettings, {"port": None}, {**file, **variable}).port == 2
    assert load(CollectorSettings, {}, file).port == 3
    assert load(CollectorSettings, {}, {}).port == CollectorSettings().port


def test_a_variable_that_nothing_reads_is_told_with_the_nearest_that_counts() -> None:
    environment = {
        "HEADWAY_ENDPIONT": "http://collector:8750",
        "HEADWAY_ENDPOINT": "http://collector:8750",
        "HEADWAY_COLECTOR_PORT": "8750",
        "HEADWAY_COLOUR": "red",
        "HEADWAY_CONFIG": "x.toml",
        "HEADWAY_LAUNCH": "7",
        "PATH": "/bin",
    }
    assert unread_variables(environment) == [
        "nothing reads the variable HEADWAY_COLECTOR_PORT; did you mean HEADWAY_COLLECTOR_PORT?",
        "nothing reads the variable HEADWAY_COLOUR; `headway doctor` shows what is set",
        "nothing reads the variable HEADWAY_ENDPIONT; did you mean HEADWAY_ENDPOINT?",
    ]


def test_what_kubernetes_sets_for_a_service_of_our_name_is_no_setting_of_ours() -> None:
    environment = {
        "HEADWAY_COLLECTOR_PORT": "tcp://10.0.0.7:8750",
        "HEADWAY_COLLECTOR_PORT_8750_TCP": "tcp://10.0.0.7:8750",
        "HEADWAY_COLLECTOR_PORT_8750_TCP_ADDR": "10.0.0.7",
        "HEADWAY_COLLECTOR_SERVICE_HOST": "10.0.0.7",
        "HEADWAY_COLLECTOR_SERVICE_PORT": "8750",
        "HEADWAY_COLLECTOR_SERVICE_PORT_HTTP": "8750",
        "HEADWAY_DASH_PORT": "tcp://10.0.0.8:8752",
    }
    assert load(CollectorSettings, {}, environment) == CollectorSettings()
    assert unread_variables(environment) == []


def test_a_short_name_serves_several_processes_and_the_long_name_wins() -> None:
    environment = {"HEADWAY_SPOOL": "/a", "HEADWAY_AGENT_SPOOL": "/b"}

    assert load(RecorderSettings, {}, environment).spool == Path("/a")
    assert load(AgentSettings, {}, environment).spool == Path("/b")


def test_the_section_of_another_process_is_left_alone(tmp_path: Path) -> None:
    file = config(tmp_path, "[agent]\nport = 3\n")

    assert load(CollectorSettings, {}, file) == CollectorSettings()


@pytest.mark.parametrize(
    ("word", "meaning"), [("1", True), ("TRUE", True), (" off ", False), ("no", False)]
)
def test_a_switch_is_spelled_as_people_spell_it(word: str, meaning: bool) -> None:
    environment = {"HEADWAY_RECORDER_ENABLED": word}

    assert load(RecorderSettings, {}, environment).enabled is meaning


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        (
            {"HEADWAY_COLLECTOR_PORT": "x"},
            "port must be int, got 'x' from HEADWAY_COLLECTOR_PORT",
        ),
        ({"HEADWAY_COLLECTOR_PORT": ""}, "port must be int, got '' from HEADWAY_COLLECTOR_PORT"),
        (
            {"HEADWAY_COLLECTOR_COMMIT_INTERVAL": "soon"},
            "commit_interval must be float, got 'soon'",
        ),
        ({"HEADWAY_COLLECTOR_PORT": "99999"}, "port must be 0 to 65535, got '99999' from"),
        ({"HEADWAY_COLLECTOR_BODY_LIMIT": "-1"}, "body_limit must be a number from 0 on, got '-1'"),
        ({"HEADWAY_COLLECTOR_COMMIT_INTERVAL": "nan"}, "commit_interval must be a number from 0"),
        ({"HEADWAY_CONFIG": "/nowhere.toml"}, "cannot read '/nowhere.toml' named by HEADWAY_CONF"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_source(
    environment: dict[str, str], sentence: str
) -> None:
    with pytest.raises(SettingError, match=sentence):
        load(CollectorSettings, {}, environment)


def test_an_argument_that_does_not_fit_is_named() -> None:
    with pytest.raises(SettingError, match="port must be int, got 'x' from the argument"):
        load(CollectorSettings, {"port": "x"}, {})


def test_a_switch_that_is_no_switch_is_named() -> None:
    with pytest.raises(SettingError, match="enabled must be bool, got 'maybe'"):
        load(RecorderSettings, {}, {"HEADWAY_RECORDER_ENABLED": "maybe"})


def test_an_unknown_option_in_the_file_is_named_with_the_known_ones(tmp_path: Path) -> None:
    file = config(tmp_path, "[collector]\nprot = 3\n")

    with pytest.raises(SettingError, match=r"'prot' in \[collector\].*known: log_format,"):
        load(CollectorSettings, {}, file)


def test_a_value_in_the_file_that_does_not_fit_is_named_with_section_and_file(
    tmp_path: Path,
) -> None:
    file = config(tmp_path, "[collector]\nport = 'x'\n")

    with pytest.raises(SettingError, match=r"got 'x' from \[collector\] of .*headway\.toml"):
        load(CollectorSettings, {}, file)


@pytest.mark.parametrize("content", ["[colector]\nport = 3\n", "collector = 3\n"])
def test_what_is_no_section_of_the_file_is_named_with_the_known_ones(
    tmp_path: Path, content: str
) -> None:
    with pytest.raises(SettingError, match=r"is no section; known: \[recorder\], \[agent\]"):
        load(CollectorSettings, {}, config(tmp_path, content))


def test_an_endpoint_without_its_scheme_is_told_how_one_looks() -> None:
    with pytest.raises(SettingError, match="an address like http://collector:8750, got 'head:1'"):
        load(ClientSettings, {"endpoint": "head:1"}, {})


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"cannot read .*headway\.toml"):
        load(CollectorSettings, {}, config(tmp_path, "[collector"))


def test_the_process_environment_is_read_when_asked_and_not_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HEADWAY_COLLECTOR_PORT", "4")

    assert load(CollectorSettings).port == 4


@pytest.mark.parametrize("declaration", SETTINGS)
def test_every_option_has_a_sentence_and_a_usable_default(declaration: type[Settings]) -> None:
    assert load(declaration, {}, {}) == declaration()
    assert all(option.sentence.endswith(".") for option in options(declaration))


def test_every_short_name_belongs_to_an_option() -> None:
    known = {option.variable for declaration in SETTINGS for option in options(declaration)}

    assert set(ALIASES) <= known


def test_each_setting_that_is_not_the_default_says_where_it_comes_from(tmp_path: Path) -> None:
    file = config(tmp_path, "[agent]\nport = 3\nbatch = 7\n")
    environment = {**file, "HEADWAY_SPOOL": "/a", "HEADWAY_AGENT_BATCH": "8"}

    assert sources(AgentSettings, environment) == {
        "spool": "HEADWAY_SPOOL",
        "port": f"[agent] of {file['HEADWAY_CONFIG']}",
        "batch": "HEADWAY_AGENT_BATCH",
    }
    assert sources(AgentSettings, {}) == {}


def test_an_address_that_does_not_fit_is_shown_without_its_password() -> None:
    with pytest.raises(SettingError) as error:
        load(AgentSettings, {}, {"HEADWAY_ENDPOINT": "ftp://me:s3cretWord99@host"})
    assert "s3cretWord99" not in str(error.value)
    assert "ftp://[masked]@host" in str(error.value)


def test_a_file_of_authorities_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="ca_file must be the path of a file that is there"):
        load(ClientSettings, {}, {"HEADWAY_CA_FILE": str(tmp_path / "ca.pem")})
