"""A stretch that is painted: covered once, each moment by the first piece that claims it."""

from hypothesis import given
from hypothesis import strategies as st

from headway.ledger.pieces import Piece, paint

PIECES = st.builds(
    Piece,
    start=st.integers(-5, 45),
    end=st.integers(-5, 45),
    category=st.sampled_from(["data_wait", "evaluation", "stalled"]),
)
REST = Piece(0, 0, "restart", "other")


@given(
    start=st.integers(0, 10),
    end=st.integers(0, 40),
    layers=st.lists(st.lists(PIECES, max_size=6), max_size=4),
)
def test_each_moment_belongs_to_the_first_piece_that_claims_it(
    start: int, end: int, layers: list[list[Piece]]
) -> None:
    claims = [piece for layer in layers for piece in layer]
    owners = [
        next((one for one in claims if one.start <= moment < one.end), REST)[2:]
        for moment in range(start, end)
    ]
    painted = paint(start, end, layers, REST)
    assert [(piece.category, piece.part) for piece in painted for _ in range(*piece[:2])] == owners
    assert all(piece.start < piece.end for piece in painted)


def test_twenty_thousand_pieces_are_painted_one_after_another() -> None:
    pieces = [Piece(10 * number, 10 * number + 8, "evaluation") for number in range(20_000)]
    painted = paint(0, 200_000, [pieces, pieces], REST)
    assert len(painted) == 40_000
