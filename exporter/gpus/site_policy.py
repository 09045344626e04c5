"""Reads the site's own policy for GPU faults from its file."""

from pathlib import Path

from headway.gpu_faults.policy import DEFAULT_POLICY, Policy
from headway.gpu_faults.policy_file import PolicyError, parse_policy
from headway.settings import SettingError


def load_policy(path: Path | None) -> Policy:
    """Return the policy in a file, or the default one where there is none.

    Raises:
        SettingError: a file that cannot be read or used.
    """
    if path is None:
        return DEFAULT_POLICY
    try:
        return parse_policy(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingError(
            f"cannot read the policy for GPU faults {str(path)!r}: {words}; name a TOML file with "
            "--gpu-policy or HEADWAY_AGENT_GPU_POLICY"
        ) from error
    except PolicyError as error:
        raise SettingError(
            f"cannot use the policy for GPU faults {str(path)!r}: {error}"
        ) from error
