"""Finds secrets by their format or name."""

from kantan_agents.support.secrets.mask import mask, shown_url
from kantan_agents.support.secrets.names import MASK, is_named_secret, name_of_value, names_in_list
from kantan_agents.support.secrets.scan import Secret, may_contain_secret, scan

__all__ = [
    "MASK",
    "Secret",
    "is_named_secret",
    "mask",
    "may_contain_secret",
    "name_of_value",
    "names_in_list",
    "scan",
    "shown_url",
]
