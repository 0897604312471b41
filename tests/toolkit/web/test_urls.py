from __future__ import annotations

from ipaddress import ip_address

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import URLRefusedError
from kantan_agents.toolkit.web.pinned_transport import is_public
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
    with pytest.raises(URLRefusedError) as caught:
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


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.0.1",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:db8::1",
    ],
)
def test_addresses_of_other_networks_are_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"])
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(ip_address(address))
