"""Which texts are secrets: keys and tokens by their format, other values by the name in front of them."""

from __future__ import annotations

import base64
import json
import random
import re
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.support.secrets import mask, may_contain_secret, scan
from kantan_agents.support.secrets.token_formats import FORMATS
from kantan_agents.traces.recorder.masking import mask_data

# Made-up values in the right format. Prefixes are written in two parts, so that scanners of source code do
# not take them for leaked keys.
_LETTERS = string.ascii_letters + string.digits
_RANDOM = random.Random(7)


def some(length: int, letters: str = _LETTERS) -> str:
    """Return random letters, among them a digit."""
    return "".join(_RANDOM.choice(letters) for _ in range(length - 1)) + "7"


HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
BASE32 = string.ascii_uppercase + "234567"

TOKENS = {
    "OpenAI": ("s" + "k-", some(48)),
    "OpenAI project": ("s" + "k-proj-", some(60)),
    "Anthropic": ("s" + "k-ant-api03-", some(93) + "-AA"),
    "OpenRouter": ("s" + "k-or-v1-", some(64, HEX)),
    "Stripe": ("sk_" + "live_", some(24)),
    "Stripe restricted": ("rk_" + "test_", some(24)),
    "Stripe webhook": ("wh" + "sec_", some(32)),
    "AWS": ("AK" + "IA", some(16, BASE32)),
    "AWS session": ("AS" + "IA", some(16, BASE32)),
    "Perplexity": ("pp" + "lx-", some(48)),
    "NVIDIA": ("nv" + "api-", some(64)),
    "Replicate": ("r" + "8_", some(37)),
    "Tavily": ("tv" + "ly-", f"dev-{some(32)}"),
    "LangSmith": ("ls" + "v2_pt_", f"{some(32, HEX)}_{some(10, HEX)}"),
    "Docker Hub": ("dc" + "kr_pat_", some(27)),
    "Atlassian": ("AT" + "ATT3", f"xFfGF0{some(180)}={some(8, UPPER)}"),
    "GitHub classic": ("gh" + "p_", some(36)),
    "GitHub OAuth": ("gh" + "o_", some(36)),
    "GitHub user": ("gh" + "u_", some(36)),
    "GitHub server": ("gh" + "s_", some(36)),
    "GitHub refresh": ("gh" + "r_", some(36)),
    "GitHub fine-grained": ("github" + "_pat_", f"{some(22)}_{some(59)}"),
    "GitLab": ("gl" + "pat-", some(20)),
    "GitLab runner": ("gl" + "rt-", some(20)),
    "Slack bot": ("xo" + "xb-", f"{some(12, string.digits)}-{some(12, string.digits)}-{some(24)}"),
    "Slack user": ("xo" + "xp-", f"{some(12, string.digits)}-{some(12, string.digits)}-{some(32, HEX)}"),
    "Slack app": ("xa" + "pp-", f"1-A{some(10, UPPER)}-{some(13, string.digits)}-{some(64, HEX)}"),
    "Slack webhook": (
        "https://hooks.sl" + "ack.com/services/",
        f"T{some(8, UPPER)}/B{some(8, UPPER)}/{some(24)}",
    ),
    "Google": ("AI" + "za", some(35)),
    "Google OAuth": ("ya" + "29.", some(60)),
    "npm": ("np" + "m_", some(36)),
    "PyPI": ("py" + "pi-", "AgEIcHlwaS5vcmc" + some(70)),
    "Hugging Face": ("h" + "f_", some(34)),
    "SendGrid": ("S" + "G.", f"{some(22)}.{some(43)}"),
    "Twilio": ("S" + "K", some(32, HEX)),
    "Mailchimp": ("", f"{some(32, HEX)}-us12"),
    "Telegram": ("", f"{some(9, string.digits)}:AA{some(33)}"),
    "Discord": ("", f"M{some(23)}.{some(6)}.{some(27)}"),
    "Square": ("sq0" + "csp-", some(43)),
    "DigitalOcean": ("do" + "p_v1_", some(64, HEX)),
    "Shopify": ("shp" + "at_", some(32, HEX)),
    "Databricks": ("da" + "pi", some(32, HEX)),
    "Vault": ("hv" + "s.", some(24)),
    "JWT": ("ey" + "J", "hbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiJ9." + some(43)),
}
PEM = "-----BEGIN {0}PRIVATE KEY-----\n{1}\n{2}\n-----END {0}PRIVATE KEY-----"


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "the key is {}.",
        "({})",
        '"{}"',
        "鍵は{}。",
        "one\n{}\ntwo",
        "x={}&y=1",
        "\\n{}",
        "{},",
        "export K={}",
        "key_{}",
    ],
)
def test_a_token_is_found_by_its_format(kind: str, around: str) -> None:
    prefix, secret = TOKENS[kind]
    text = around.format(prefix + secret)
    assert secret not in mask(text)
    assert may_contain_secret(text)
    for _ in range(3):
        text = json.dumps({"inner": text})
        assert secret not in mask(text)
        assert json.loads(mask(text))


def test_there_is_a_token_for_each_format_that_the_documentation_names() -> None:
    guide = Path("docs/guides/record-traces.md").read_text("utf-8")
    documented = guide[guide.index("| What is masked |") : guide.index("What is not masked")]
    for kind in TOKENS:
        assert kind.split()[0] in documented
    for name in ("private key", "Authorization", "api_key", "password", "user:password@"):
        assert name in documented


NAMED = [
    "api_key={}",
    "apikey: {}",
    "API-KEY = {}",
    "apiKey={}",
    'api_key: "{}"',
    "x-api-key: {}",
    "X-Api-Key:{}",
    "OPENAI_API_KEY={}",
    "export OPENAI_API_KEY='{}'",
    '{{"api_key": "{}"}}',
    "{{'api_key': '{}'}}",
    "{{'x-api-key': b'{}'}}",
    '{{"openaiApiKey":"{}"}}',
    "Authorization: Bearer {}",
    "authorization: Basic {}",
    "AUTHORIZATION: Token {}",
    '{{"Authorization": "Bearer {}"}}',
    "[('Authorization', 'Bearer {}')]",
    "[(b'authorization', b'{}')]",
    "proxy-authorization: {}",
    "Authorization: Bearer: {}",
    "Bearer: {}",
    "bearer bearer {}",
    "bearer={}",
    '{{"bearer": "{}"}}',
    "curl --api-key {} -v",
    "curl --api-key={} -v",
    'curl -H "Authorization: Bearer {}" https://example.com',
    "curl -H 'x-api-key: {}' https://example.com",
    "https://example.com/?api_key={}&x=1",
    "https://example.com/?x=1&apikey={}#top",
    "https://example.com/?access_token={}",
    "https://me:{}@example.com/x",
    "postgres://me:{}@db.internal:5432/app",
    "redis://:{}@cache/0",
    "aws_secret_access_key = {}",
    "AWS_SECRET_ACCESS_KEY={}",
    '{{"SecretAccessKey": "{}"}}',
    "AWS_SESSION_TOKEN={}",
    "AccountName=a;AccountKey={};EndpointSuffix=core",
    "DB_PASSWORD={}",
    "password={}",
    "password = {}",
    "password: {}",
    'password = "{}"',
    "--password {}",
    "PGPASSWORD={} psql",
    "MYSQL_PWD={}",
    "DB_PASS={}",
    '{{"client_secret": "{}"}}',
    "client_secret={}&grant_type=x",
    "secret_key: {}",
    "//registry.npmjs.org/:_authToken={}",
    "GITHUB_TOKEN={}",
    "refresh_token={}",
    '{{"token": "{}"}}',
    "`api_key`: `{}`",
    "**password**: {}",
    "**Password:** {}",
    "- **DB_PASSWORD:** `{}`",
    "*api_key* = {}",
    "AZURE_OPENAI_KEY={}",
    '{{"anthropic_key": "{}"}}',
]
VALUE = "q7Xw9Lp2Rt5Vb8Nz3Kd6"


@pytest.mark.parametrize("text", NAMED)
def test_a_value_is_found_by_its_name_in_any_spelling_and_quoting(text: str) -> None:
    written = text.format(VALUE)
    masked = mask(written)
    assert masked in (written.replace(VALUE, "***"), written.replace(f"{VALUE}#top", "***"), "api_key=***")
    assert may_contain_secret(written)
    for _ in range(3):
        written = json.dumps({"inner": f"first\n{written}\nlast"})
        assert VALUE not in mask(written)
        assert json.loads(mask(written))
        assert VALUE not in repr(mask_data(json.loads(written)))
    assert VALUE not in mask(repr({"x": text.format(VALUE)}))


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("postgres://user:password@host/db", "postgres://user:***@host/db"),
        ("https://user:p@ss:w0rd@host", "https://user:***@host"),
        ("DB_PASSWORD=password", "DB_PASSWORD=***"),
        ('{"password": "secret"}', '{"password": "***"}'),
        ('{"password": "correct horse \\"battery\\" staple"}', '{"password": "***"}'),
        ("Authorization: Basic dXNlcjpwYXNz\nAccept: */*", "Authorization: Basic ***\nAccept: */*"),
        ('curl -H "Authorization: Bearer x" -d a', 'curl -H "Authorization: Bearer ***" -d a'),
        ("api_key=abcdef12&x=1", "api_key=***&x=1"),
        ("Basic dXNlcjpwYXNz", "Basic ***"),
        ("eyJhbGciOiJub25lIn0.eyJzdWIiOiI0MiJ9", "eyJ***"),
        ("xo" + "xb-34532454-e039d02840a0b9379c", "xoxb-***"),
        ("s" + f"k-{VALUE}.{VALUE}", "sk-***"),
        ("s" + f"k-AB1.{VALUE}.", "sk-***."),
        ("AK" + "IAZZZZZZZZZZZZZZZZ", "AKIA***"),
    ],
)
def test_the_name_and_the_text_around_a_secret_stay(text: str, masked: str) -> None:
    assert mask(text) == masked


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_a_private_key_of_several_lines_is_found(kind: str) -> None:
    lines = "MII" + some(61), some(40)
    key = PEM.format(kind, *lines)
    for text in (
        key,
        json.dumps(key),
        json.dumps({"k": json.dumps(key)}),
        key[:-20],
        key.replace("\n", "\r\n"),
    ):
        masked = mask(f"before {text} after")
        assert not any(line in masked for line in lines)
        assert masked.startswith("before ")


DATA: list[Any] = [
    {"api_key": VALUE},
    {"headers": {"X-API-Key": [VALUE]}},
    {"headers": [["authorization", VALUE]]},
    {"headers": [{"name": "x-api-key", "value": VALUE}]},
    {"env": [{"value": VALUE, "name": "DB_PASSWORD"}]},
    {"command": ["login", "--api-key", VALUE]},
    {"password": 74839201},
    {"deep": json.dumps({"db_password": VALUE})},
    {"deep": json.dumps({"password": 74839201})},
]


@pytest.mark.parametrize("data", DATA, ids=range(len(DATA)))
def test_a_value_in_data_is_found_by_its_key(data: Any) -> None:
    assert may_contain_secret(json.dumps(data))
    masked = json.dumps(mask_data(data))
    assert VALUE not in masked
    assert "74839201" not in masked
    for text in (inner for inner in data.values() if isinstance(inner, str) and inner.startswith("{")):
        json.loads(mask(text))


HARMLESS = [
    "The password is required. Never share your password or your API key with anyone.",
    "She is the bearer of this letter; a bearer certificates office has Basic knowledge of it.",
    "Bearer: responsible for all of it. The bearer: whoever has it. sk-learn.preprocessing.StandardScaler",
    "The secret: keep it simple. A secret to success: work.",
    "def login(username: str, password: str) -> Token: ...",
    "def connect(self, password=None, *, token: Optional[str] = None): ...",
    "if password == stored: raise ValueError('wrong password')",
    "client = Client(password=password, token=token)",
    "secret_key = os.environ['SECRET_KEY']",
    "const apiKey = process.env.OPENAI_API_KEY;",
    "password = getpass.getpass()",
    "token = tokenizer.next_token(stream)",
    "password: ${DB_PASSWORD}",
    "DB_PASSWORD=<your password>",
    "PASSWORD={{ password }}",
    '{"password": {"type": "string", "description": "The password of the user"}}',
    '{"required": ["username", "password"], "properties": {"token": {"type": "string"}}}',
    '{"type": "object", "api_key": null, "password": ""}',
    '{"input_tokens": 74, "output_tokens": 9, "total_tokens": 83, "max_tokens": 4096}',
    '{"kind": "api_key", "number-1": true, "other": ["password"], "step-2" : null}',
    "{True: 'api_key', 'step 2': [], 'kind': 'authorization', \n '2 steps': None}",
    '{"next_token": "page2", "token_type": "bearer", "token_count": 12}',
    "trace_01a204c53fe378078fbc27fa1e39a713 span_0123456789abcdef01234567",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "commit 8394693f0c2b1d5e7a9b8c6d4e2f0a1b3c5d7e9f, id 123e4567-e89b-12d3-a456-426614174000",
    "resp_68af4030592c81938ec0a5fbab4a3e9f05438e46b5f69a3b call_abcDEF123456 msg_0123456789",
    "https://example.com:8080/a/b?page=2&q=a%20b#c user@example.com https://git@github.com/a/b.git",
    "PWD=/home/aiko/projects",
    "strings.sk-SK.json strings.sk-SK.v2.json messages_sk-SK.2024.json app.sk-sk.10.resx",
    "ask-0123456789abc task-runner-0123456789 risk-assessment-framework",
    "2026-01-15T12:30:45.123Z 10.0.0.1 +81 3 1234 5678",
    "SELECT secret, token FROM vault WHERE key = 'name'",
    "name = input('Password: ', stream=None)",
    'ask("Password: ")',
    '{"label":"password:","value":"at least 8 letters"}',
    "`password`: the password of the user",
    "`password`: `str`, hashed",
    "**password**: *required*",
    "`api_key`: `None` or a text",
    "def connect(password: str, **options)",
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYI\n-----END PUBLIC KEY-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGq2 aiko@host",
    f"data:image/png;base64,{base64.b64encode(bytes(range(256)) * 8).decode()}",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_code_ids_and_hashes_are_not_changed(text: str) -> None:
    assert mask(text) == text
    written = json.dumps({"inner": text})
    assert mask(written) == written
    assert mask_data({"text": text, "list": [text, {"k": text}]}) == {
        "text": text,
        "list": [text, {"k": text}],
    }


def test_the_source_and_the_documentation_of_this_library_are_hardly_changed() -> None:
    texts = [
        path.read_text("utf-8")
        for path in [*Path("kantan_agents").rglob("*.py"), *Path("docs").rglob("*.md")]
    ]
    lines = [line for text in texts for line in text.splitlines()]
    changed = [line for line in lines if mask(line) != line]
    assert len(changed) < len(lines) / 1_000


@given(st.binary(min_size=30, max_size=3_000))
def test_media_in_base64_is_not_changed(content: bytes) -> None:
    text = base64.b64encode(content).decode()
    assert mask(text) == text


@given(st.uuids(), st.binary(min_size=32, max_size=32), st.integers())
def test_ids_and_hashes_are_not_changed(uuid: Any, digest: bytes, number: int) -> None:
    for text in (
        f"{uuid}",
        f"trace_{uuid.hex}",
        digest.hex(),
        f"sha256:{digest.hex()}",
        f"id={number}",
        f"#{number}",
    ):
        assert mask(text) == text


def test_each_format_is_also_found_by_the_search_that_comes_before() -> None:
    """The formats are searched only in texts in which a needle was found."""
    for kind, (prefix, secret) in TOKENS.items():
        assert may_contain_secret(prefix + secret), kind
    for entry in FORMATS:
        re.compile(entry.needle)


LIKELY = st.lists(
    st.sampled_from(
        [
            *" \n\t\\\"'=:,-{}[]()@/.&;`*",
            "api_key",
            "Password",
            "token",
            "Bearer ",
            "https://a:",
            "--secret ",
            "a1b2c3d4e5",
        ]
        + [prefix + secret for prefix, secret in TOKENS.values()]
    ),
    max_size=12,
).map("".join)


@given(LIKELY)
def test_a_text_without_a_needle_has_no_secret_and_masking_is_idempotent(text: str) -> None:
    if not may_contain_secret(text):
        assert scan(text + "\n", whole=False)[0] == []
    masked = mask(text)
    assert mask(masked) == masked
    if mask(text) != text:
        assert may_contain_secret(json.dumps({"k": text}, ensure_ascii=False))
