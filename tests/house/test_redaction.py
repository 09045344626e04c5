"""What looks like a secret is masked, what only speaks of one is not."""

import pytest

from headway.redaction import MASK, masked, masked_values, secrets_of

WORD = "s3cretWord99"
"""The word that must be gone; made up, as is every other secret here."""


@pytest.mark.parametrize(
    "text",
    [
        f"cannot reach https://me:{WORD}@tracker.example/run/7",
        f"https://{WORD}@host",
        f"postgresql+psycopg://u:{WORD}@db:5432/x?y=1",
        f"Authorization: Bearer {WORD}",
        f"authorization: basic {WORD}==",
        f"WANDB_API_KEY={WORD} python train.py",
        f"{{'api_key': '{WORD}', 'x': 1}}",
        f'{{"client-secret": "{WORD}"}}',
        f"train.py --api-key {WORD} --steps 5",
        f"train.py --password={WORD}",
        f"HF_TOKEN={WORD}",
        f"--token {WORD}",
        f"?token={WORD}&run=7",
        f"db_password: {WORD}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{WORD}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{WORD}",
        f"the key is hf_{WORD}{WORD}",
        f"ghp_{WORD}{WORD}",
        f"sk-{WORD}-{WORD}",
        f"headway_{WORD}_{WORD}",
        f"eyJ{WORD}.{WORD}.{WORD}",
    ],
)
def test_a_secret_is_masked_and_what_names_it_is_kept(text: str) -> None:
    found = masked(text)

    assert WORD not in found
    assert MASK in found
    assert masked(found) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "token sequence lengths differ from 4096",
        "unexpected token: identifier",
        "tokens: 123456789012 of 987654321098765",
        "total_token=123456789012345",
        "tokens_per_step=4194304",
        "KeyError: 'layers.0.attention.wq.weight'",
        "see https://docs.example/page?x=1#key",
        "http://collector:8750/v1/logs answered 503",
        "the password is wrong",
        "basic block 7 of the graph",
        "a bearer of bad news",
        "torch.distributed.DistBackendError: NCCL error in socket.cpp:42, key 0:1",
        "mlx5_0/ports/1 sk-buff allocation failed",
    ],
)
def test_text_that_only_speaks_of_keys_and_tokens_is_kept(text: str) -> None:
    assert masked(text) == text


@pytest.mark.slow
def test_a_long_hostile_text_takes_no_long_time() -> None:
    for part in ("a.", "token=", "://a", "eyJ-", "--password ", "secret", "x" * 50 + "-key "):
        text = part * (200_000 // len(part))
        assert isinstance(masked(text), str)  # it ends, and the suite's own limit is the judge


def test_values_that_the_environment_calls_secret_are_masked_as_they_stand() -> None:
    environment = {
        "WANDB_API_KEY": WORD,
        "HEADWAY_TOKEN": f"{WORD} and more",
        "TOKENIZERS_PARALLELISM": "false and false",
        "MASTER_ADDR": "node-a.cluster.example",
        "SSH_KEY": "short",
    }
    secrets = secrets_of(environment)

    assert secrets == (f"{WORD} and more", WORD)
    assert masked(f"<{WORD} and more> {WORD}", secrets) == f"<{MASK}> {MASK}"
    assert masked("node-a.cluster.example", secrets) == "node-a.cluster.example"


def test_a_field_whose_name_says_secret_keeps_nothing_of_its_text() -> None:
    values = {
        "message": f"https://u:{WORD}@h",
        "settings": {"api_key": WORD, "lr": 0.1, "api_key_id": "x", "wandb_token": WORD},
        "words": (f"--token {WORD}", "--steps", "5"),
        "tokens_per_step": 4096,
        "packed": b"password=123456",
        "rank": 3,
    }

    assert masked_values(values) == {
        "message": f"https://{MASK}@h",
        "settings": {"api_key": MASK, "lr": 0.1, "api_key_id": MASK, "wandb_token": MASK},
        "words": (f"--token {MASK}", "--steps", "5"),
        "tokens_per_step": 4096,
        "packed": b"password=123456",
        "rank": 3,
    }
