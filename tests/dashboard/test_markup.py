"""Names from training programs reach the page as text, never as markup."""

from headway.dashboard import markup


def test_a_run_name_cannot_become_markup() -> None:
    hostile = '<img src=x onerror="alert(1)">'

    html = markup.table("Runs", ("Run", "#Steps"), [(markup.run_link(hostile, hostile), hostile)])

    assert "<img" not in html
    assert "&lt;img" in html


def test_a_link_survives_characters_that_have_a_meaning_in_addresses() -> None:
    link = markup.run_link("a/b c?d&e=\u00e9", "run")

    assert 'href="run?run=a%2Fb%20c%3Fd%26e%3D%C3%A9"' in link.html


def test_a_share_bar_says_its_shares_to_a_screen_reader() -> None:
    bar = markup.share_bar({"productive": 3, "restart": 1, "down": 0})

    assert 'aria-label="Productive 75.0 %, Restart 25.0 %"' in bar.html
    assert "width:75.000%" in bar.html
    assert "Down" not in bar.html


def test_a_notice_carries_the_next_step() -> None:
    html = markup.notice("Nothing answers.", "Start it with `headway collect`.")

    assert "Nothing answers." in html
    assert "headway collect" in html


def test_words_of_a_sentence_become_links_or_stand_out_and_the_rest_stays_text() -> None:
    link = markup.link("run?run=1", "a<b")

    spoken = markup.spoken("a<b loses most: 3 h of 3 h.", {"a<b": link, "3 h": None, "gone": None})

    assert spoken.html == f"{link.html} loses most: <b>3 h</b> of 3 h."


def test_the_cells_of_a_table_that_no_phone_has_room_for_carry_the_names_of_their_columns() -> None:
    short = markup.table("Runs", ("Run", "#Steps"), [("a", "1")])
    long = markup.table("Runs", ("Run", "#Steps", "State", "Team"), [("a", "1", "ended", "x")])

    assert "data-label" not in short
    assert 'data-label="Run">a<' in long
    assert 'data-label="Steps">1<' in long
