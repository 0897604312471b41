"""Finds secrets in texts and data: keys and tokens by their format, other values by their name."""

from kantan_agents.support.secrets.data import change_named, change_pairs
from kantan_agents.support.secrets.names import is_secret_value, secret_name
from kantan_agents.support.secrets.scan import Secret, may_contain_secret, scan

__all__ = [
    "Secret",
    "change_named",
    "change_pairs",
    "is_secret_value",
    "may_contain_secret",
    "scan",
    "secret_name",
]
