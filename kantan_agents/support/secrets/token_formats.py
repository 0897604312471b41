"""The formats of keys and tokens that need no name before them.

They are from the providers' documentation, compared with the public rules of detect-secrets and gitleaks.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Format(NamedTuple):
    """A format: the visible prefix, the masked rest, and a needle.

    The needle, without look-around, finds at least all text with this format.
    """

    name: str
    prefix: str
    rest: str
    needle: str


FORMATS = (
    Format(
        "OpenAI, Anthropic, OpenRouter and DeepSeek API key",
        "sk-",
        r"(?:[A-Za-z0-9_-]{9,}[A-Za-z0-9_](?:\.[A-Za-z0-9_-]*[A-Za-z0-9_])*"
        # `sk-SK.` is the language in the name of a file.
        r"|(?![Ss][Kk]\.)(?=[A-Za-z_.-]{0,64}[0-9])[A-Za-z0-9_.-]{9,}[A-Za-z0-9_])",
        "sk-",
    ),
    Format("Stripe key", "[sr]k_(?:live|test|prod)_", "[A-Za-z0-9]{10,}", "[sr]k_(?:live|test|prod)_"),
    Format("Stripe webhook secret", "whsec_", "[A-Za-z0-9+/=]{16,}", "whsec_"),
    Format(
        "AWS access key id",
        "(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])",
        "[A-Z0-9]{16}(?![A-Za-z0-9])",
        "A(?:KI|SI|BI|CC|3T)[A-Z0-9]{9}",
    ),
    Format("GitHub token", "gh[pousr]_", "[A-Za-z0-9_]{30,}", "gh[pousr]_"),
    Format("GitHub fine-grained token", "github_pat_", "[A-Za-z0-9_]{22,}", "github_pat_"),
    Format(
        "GitLab token",
        "gl(?:pat|dt|ft|rt|rtr|soat|cbt|ptt|agent|oas|imt|ffct|wt)-",
        r"[A-Za-z0-9_.=-]{20,}",
        "gl[a-z]{2,5}-[A-Za-z0-9_]{4}",
    ),
    Format("Slack token", "(?:xox[a-z](?:[.-]xox[a-z])?|xapp)-", "[A-Za-z0-9-]{10,}", "xox[a-z][.-]|xapp-"),
    Format(
        "Slack webhook",
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/",
        "[A-Za-z0-9+/_-]{20,}",
        r"hooks\.slack",
    ),
    Format("Google API key", "AIza", "[A-Za-z0-9_-]{30,}", "AIza"),
    Format("Google OAuth token", r"ya29\.", "[A-Za-z0-9_-]{20,}", r"ya29\."),
    Format("Google OAuth client secret", "GOCSPX-", "[A-Za-z0-9_-]{20,}", "GOCSPX-"),
    Format("npm token", "npm_", "[A-Za-z0-9]{36,}", "npm_[A-Za-z0-9]{8}"),
    Format("PyPI token", "pypi-", "[A-Za-z0-9_-]{40,}", "pypi-A"),
    Format("Hugging Face token", "(?:hf|api_org)_", "[A-Za-z0-9]{30,}", "(?:hf|api_org)_[A-Za-z0-9]{12}"),
    Format("Groq API key", "gsk_", "[A-Za-z0-9]{40,}", "gsk_"),
    Format("xAI API key", "xai-", "[A-Za-z0-9]{40,}", "xai-[A-Za-z0-9]{8}"),
    Format("Perplexity API key", "pplx-", "[A-Za-z0-9]{40,}", "pplx-"),
    Format("NVIDIA API key", "nvapi-", "[A-Za-z0-9_-]{40,}", "nvapi-"),
    Format("Replicate token", "r8_", "[A-Za-z0-9]{37,}", "r8_[A-Za-z0-9]{12}"),
    Format("Tavily key", "tvly-", "[A-Za-z0-9-]{20,}", "tvly-"),
    Format("LangSmith key", "lsv2_(?:pt|sk)_", "[a-f0-9]{32}_[a-f0-9]{10}", "lsv2_"),
    Format("Docker Hub token", "dckr_(?:pat|oat)_", "[A-Za-z0-9_-]{27,}", "dckr_"),
    Format("Atlassian token", "ATATT3", "[A-Za-z0-9_=-]{60,}", "ATATT3"),
    Format("SendGrid key", r"SG\.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{30,}", r"SG\.[A-Za-z0-9_-]{16}"),
    Format("Twilio API key", "SK", "[0-9a-f]{32}(?![A-Za-z0-9])", "SK[0-9a-f]{16}"),
    Format(
        "Mailchimp key",
        "",
        r"[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])",
        "[0-9a-f]{16}-us[0-9]",
    ),
    Format(
        "Telegram bot token",
        "",
        r"[0-9]{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
        "[0-9]{8}:A",
    ),
    Format(
        "Discord bot token",
        "",
        r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
        r"[MNO][A-Za-z0-9_-]{20}[A-Za-z0-9_-]{3,5}\.[A-Za-z0-9_-]{6}\.",
    ),
    Format(
        "Square token",
        "(?:sq0csp-|sq0atp-|EAAA)",
        "[A-Za-z0-9_-]{22,}",
        "sq0(?:csp|atp)-|EAAA[A-Za-z0-9_-]{16}",
    ),
    Format("DigitalOcean token", "do[opr]_v1_", "[a-f0-9]{64}", "do[opr]_v1_"),
    Format("Shopify token", "shp(?:at|ca|pa|ss)_", "[a-fA-F0-9]{32}", "shp(?:at|ca|pa|ss)_"),
    Format("Databricks token", "dapi", "[a-f0-9]{32}(?:-[0-9])?(?![A-Za-z0-9])", "dapi[a-f0-9]{8}"),
    Format("HashiCorp Vault token", r"hv[sbr]\.", "[A-Za-z0-9_-]{24,}", r"hv[sbr]\."),
    Format("Linear key", "lin_api_", "[A-Za-z0-9]{32,}", "lin_api_"),
    Format("Notion token", "ntn_", "[A-Za-z0-9]{40,}", "ntn_[A-Za-z0-9]{8}"),
    Format("age secret key", "AGE-SECRET-KEY-1", "[0-9A-Z]{50,}", "AGE-SECRET-KEY"),
    Format(
        "JSON Web Token",
        "eyJ",
        r"[A-Za-z0-9_-]{8,}(?:(?:\.[A-Za-z0-9_-]*){2,4}|\.eyJ[A-Za-z0-9_-]{8,})",
        r"eyJ[A-Za-z0-9_-]{8,}\.",
    ),
)
"""Without a prefix, the whole token is masked."""

# JSON inside text escapes a line end with two characters and others with six. The last of them is a letter or
# digit, and a token may follow directly.
BOUNDARY = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))"


_ANY = "|".join(f"(?:{entry.prefix})(?P<r{number}>{entry.rest})" for number, entry in enumerate(FORMATS))

# If a web token starts but does not end as one, no other starts up to the end of the row.
TOKEN = re.compile(f"{BOUNDARY}(?:{_ANY}|eyJ[A-Za-z0-9_-]+)")
"""The last group is masked. Without a group, the match is not a token."""

NEXT_TOKEN = re.compile(_ANY)
"""Directly after another token."""

NEEDLES = tuple(entry.needle for entry in FORMATS)
