from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import URLRejectedError
from kantan_agents.toolkit.web.pinned_transport import NOT_PUBLIC, is_public
from kantan_agents.toolkit.web.urls import checked_url, host_of


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://example.com", "example.com"),
        ("HTTPS://Example.COM:8443/a?b#c", "example.com"),
        ("http://example.com./", "example.com"),
        ("http://bücher.example/", "xn--bcher-kva.example"),
        ("http://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ("http://a。example/", "a.example"),
        ("http://127.0.0.1/", "127.0.0.1"),
        ("http://[::1]:80/", "::1"),
        ("http://[0:0:0:0:0:0:0:1]/", "::1"),
        ("http://[::ffff:127.0.0.1]/", "127.0.0.1"),
        ("http://a_b.example/", "a_b.example"),
        ("http://localhost/", "localhost"),
    ],
)
def test_the_host_is_that_which_is_reached(url: str, host: str) -> None:
    assert host_of(url) == host
    assert checked_url(url).raw_host.decode() == host


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com",
        "http:example.com",
        "http:///path",
        "ftp://example.com",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://user@example.com/",
        "http://user:password@example.com/",
        "http://:@example.com@other.example/",
        "http://example.com\\@other.example/",
        "http://exam ple.com/",
        "http://example.com/a b",
        "http://example.com/\n",
        "http://example.com/\x00",
        "http://%65xample.com/",
        "http://\uff41.example/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0x7f000001/",
        "http://127.1/",
        "http://017700000001/",
        "http://1.2.3.4.5/",
        "http://256.1.1.1/",
        "http://example.1/",
        "http://[fe80::1%25eth0]/",
        "http://[::1/",
        "http://a..b/",
        "http://.example/",
        f"http://{'a' * 64}.example/",
        f"http://{'a.' * 130}example/",
        f"http://example.com/{'a' * 5000}",
        "http://example.com:99999999/",
    ],
)
def test_what_may_be_read_in_two_ways_is_refused(url: str) -> None:
    assert host_of(url) is None
    with pytest.raises(URLRejectedError) as caught:
        checked_url(url)
    assert len(str(caught.value)) < 600


@given(st.one_of(st.text(max_size=40), st.text(max_size=20).map("http://{}".format)))
def test_any_text_is_refused_or_has_one_host(text: str) -> None:
    host = host_of(text)
    if host is not None:
        url = checked_url(text)
        assert url.raw_host.decode() == host
        assert host_of(str(url)) == host
        assert httpx.URL(str(url)).raw_host.decode() == host


OUTSIDE_OF_UNICAST = (
    "::/128",  # unspecified
    "::1/128",  # loopback
    "::/96",  # IPv4 addresses behind zeros
    "::ffff:0:0:0/96",  # the same, as translated for hosts without IPv4
    "64:ff9b:1::/48",  # translation in a local network
    "100::/64",  # discarded
    "100:0:0:1::/64",  # a prefix that leads nowhere
    "5f00::/16",  # segments of routes
    "fc00::/7",  # unique local; metadata of AWS
    "fe80::/10",  # link-local
    "fec0::/10",  # site-local
    "ff00::/8",  # multicast
    "4000::/3",  # reserved, as are all further ones
    "e000::/4",
)
STANDING_FOR: tuple[Callable[[int], int], ...] = (
    lambda v4: 0xFFFF << 32 | v4,  # mapped
    lambda v4: 0x64_FF9B << 96 | v4,  # NAT64
    lambda v4: 0x2002 << 112 | v4 << 80 | 1,  # 6to4
    lambda v4: 0x2600_1234 << 96 | 0x5EFE << 32 | v4,  # ISATAP
    lambda v4: 0x2600_1234 << 96 | 0x0200_5EFE << 32 | v4,
    lambda v4: 0x2001 << 112 | v4 ^ 0xFFFF_FFFF,  # Teredo
)


@pytest.mark.parametrize("network", [*NOT_PUBLIC, *OUTSIDE_OF_UNICAST])
def test_addresses_of_other_networks_are_not_public(network: str) -> None:
    addresses = ip_network(network)
    for place in (0, addresses.num_addresses // 2, addresses.num_addresses - 1):
        address = addresses[place]
        assert not is_public(address), address
        if isinstance(address, IPv4Address):
            for form in STANDING_FOR:
                assert not is_public(IPv6Address(form(int(address)))), (form, address)


@pytest.mark.parametrize(
    "address",
    [
        "93.184.216.34",
        "8.8.8.8",
        "44.0.0.1",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.88.98.255",
        "192.88.100.0",
        "198.17.255.255",
        "223.255.255.255",
        "2606:4700::1111",
        "2001:200::1",
        "2400:cb00::1",
        "2a00:1450::1",
        "3fff:1000::1",
        "64:ff9b::808:808",
        "::ffff:8.8.8.8",
        "2002:808:808::1",
    ],
)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(ip_address(address))
