"""A site's rules are asked, remembered and obeyed."""

from ipaddress import ip_network
from typing import Any

import pytest

from app.errors import FetchFailed, UrlBlocked
from app.ingestion.guarded_http import GuardedHttp
from app.ingestion.guarded_network import Deadline
from app.ingestion.robots import LIFETIME_SECONDS, MOST_BYTES, Robots

RULES = b"""User-agent: *
Disallow: /private
Allow: /private/open$

User-agent: footnote
Disallow: /*.tmp
"""


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def robots_for(site: Any, agent: str = "Footnote/1.0 (+https://our.example)", **more: Any) -> Robots:
    return Robots(GuardedHttp([ip_network("127.0.0.1")], user_agent=agent, resolve=site.addresses), **more)


def allowed(robots: Robots, url: str) -> bool:
    try:
        robots.require(url, Deadline(10))
    except UrlBlocked as refusal:
        if refusal.code != "robots_disallowed":
            raise
        return False
    return True


def test_the_rules_for_our_product_or_else_for_everybody_count(site: Any) -> None:
    site.pages["/robots.txt"] = site.Page(RULES)
    ours, other = robots_for(site), robots_for(site, "Other")
    assert [allowed(ours, site.url + path) for path in ("/private", "/a.tmp", "/a")] == [True, False, True]
    assert [allowed(other, site.url + path) for path in ("/private", "/private/open", "/a.tmp")] == [False, True, True]


def test_rules_are_asked_for_once_an_hour(site: Any, clock: Clock) -> None:
    site.pages["/robots.txt"] = site.Page(RULES)
    robots = robots_for(site, monotonic=clock)
    for _ in range(3):
        assert allowed(robots, f"{site.url}/a")
    assert len(site.visits) == 1
    clock.now = LIFETIME_SECONDS + 1
    assert allowed(robots, f"{site.url}/a")
    assert len(site.visits) == 2


@pytest.mark.parametrize("status", [401, 404, 410])
def test_a_site_without_rules_allows_everything(site: Any, status: int) -> None:
    site.pages["/robots.txt"] = site.Page(b"User-agent: *\nDisallow: /", status)
    assert allowed(robots_for(site), f"{site.url}/a")


@pytest.mark.parametrize("status", [200, 204])
def test_a_site_with_empty_rules_allows_everything(site: Any, status: int) -> None:
    site.pages["/robots.txt"] = site.Page(b"", status)
    assert allowed(robots_for(site), f"{site.url}/a")


@pytest.mark.parametrize(
    ("agents", "is_ours"),
    [
        ("Footnote", True),
        ("FOOTNOTE/2.0 # a version", True),
        ("footnote*", True),
        ("other\r\nUser-agent:footnote", True),
        ("foot", False),
        ("footnote-images", False),
        ("note", False),
        ("", False),
    ],
)
def test_a_group_is_for_the_product_that_it_names_in_full(site: Any, agents: str, is_ours: bool) -> None:
    text = f"\ufeff  USER-AGENT : {agents}\r\n\r\nDisallow\t: /a # all\r\n"
    site.pages["/robots.txt"] = site.Page(text.encode())
    assert allowed(robots_for(site), f"{site.url}/a") is not is_ours


@pytest.mark.parametrize(
    ("rule", "path", "is_allowed"),
    [
        ("Disallow: /*.pdf$", "/a.pdf", False),
        ("Disallow: /*.pdf$", "/a.pdf?x=1", True),
        ("Disallow: /*?q=", "/x?q=1", False),
        ("Disallow: /a*z", "/abcz/q", False),
        ("Disallow: /ツ", "/%E3%83%84", False),
        ("Disallow: /%e3%83%84", "/%E3%83%84", False),
        ("Disallow: /%7Ejoe", "/~joe", False),
        ("Disallow: /a%2Fb", "/a/b", True),
        ("Disallow: /a%2Ab", "/axb", True),
        ("Disallow: /a\rAllow: /a", "/a", True),
        ("Disallow:", "/a", True),
        ("Disallow: /" + "*a" * 60 + "$", "/" + "a" * 500 + "b", True),
    ],
)
def test_paths_are_matched_as_the_standard_says(site: Any, rule: str, path: str, is_allowed: bool) -> None:
    site.pages["/robots.txt"] = site.Page(f"User-agent: *\n{rule}\n".encode())
    assert allowed(robots_for(site), site.url + path) is is_allowed


def test_a_rule_that_is_cut_off_does_not_count(site: Any) -> None:
    head = b"User-agent: *\nDisallow: /no\n"
    rest = b"\nDisallow: /late"
    filled = head + b"#" * (MOST_BYTES - len(head) - len(rest) + len(b"late")) + rest
    site.pages["/robots.txt"] = site.Page(filled)
    robots = robots_for(site)
    assert [allowed(robots, site.url + path) for path in ("/no", "/a")] == [False, True]


def test_a_site_that_cannot_tell_its_rules_allows_nothing(site: Any) -> None:
    robots = robots_for(site)
    for _ in range(2):
        site.pages["/robots.txt"] = site.Page(status=503, headers={"Retry-After": "7"})
        with pytest.raises(FetchFailed) as failure:
            robots.require(f"{site.url}/a", Deadline(10))
        assert (failure.value.code, failure.value.retry_after) == ("robots_unavailable", 7)
    site.pages["/robots.txt"] = site.Page(RULES)
    assert allowed(robots, f"{site.url}/a")


def test_rules_are_found_by_redirect_but_not_inside(site: Any) -> None:
    site.pages["/robots.txt"] = site.Page(status=301, headers={"Location": "/rules"})
    site.pages["/rules"] = site.Page(b"User-agent: *\nDisallow: /")
    assert not allowed(robots_for(site), f"{site.url}/a")
    site.pages["/robots.txt"] = site.Page(status=301, headers={"Location": "http://127.0.0.2/"})
    with pytest.raises(UrlBlocked) as refusal:
        robots_for(site).require(f"{site.url}/a", Deadline(10))
    assert refusal.value.code == "url_blocked"


def test_of_endless_rules_the_beginning_counts(site: Any) -> None:
    site.pages["/robots.txt"] = site.Page(b"User-agent: *\nDisallow: /no\n" + b"#" * MOST_BYTES + b"\nDisallow: /late")
    robots = robots_for(site)
    assert [allowed(robots, site.url + path) for path in ("/no", "/late")] == [False, True]
