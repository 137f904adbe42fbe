"""Who may ask the explorer's server: its own page, on this machine, in small questions."""

import pytest
from starlette.testclient import TestClient

from gnomon.explorer import Shelf, explorer
from gnomon.explorer.guard import LARGEST

HOSTS = ("localhost:8000", "127.0.0.1:8000", "[::1]:8000")
JSON = {"content-type": "application/json"}


def client(token=None, host="localhost:8000"):
    app = explorer(Shelf(), HOSTS, token)
    return TestClient(app, base_url=f"http://{host}", raise_server_exceptions=False, follow_redirects=False)


@pytest.mark.parametrize("host", HOSTS)
def test_the_page_is_served_under_each_name_of_this_machine(host):
    answer = client(host=host).get("/")
    assert answer.status_code == 200
    assert "explorer.js" in answer.text


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost", "localhost:8001", "127.0.0.1.nip.io:8000", ""]
)
def test_another_host_is_refused_whatever_address_it_resolves_to(host):
    assert client().get("/", headers={"host": host}).status_code == 421
    assert client().post("/api/x", headers={"host": host, **JSON}, content="{}").status_code == 421


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 400),  # let through: there is no such question
        ({"origin": "http://localhost:8000", "sec-fetch-site": "same-origin"}, 400),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://localhost:8000"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_a_question_comes_from_the_page_itself(headers, status):
    assert client().post("/api/nothing", headers={**JSON, **headers}, content="{}").status_code == status


def test_a_question_is_small():
    assert client().post("/api/nothing", headers=JSON, content=b" " * (LARGEST + 1)).status_code == 413
    chunks = (b" " * 2**16 for _ in range(LARGEST // 2**16 + 1))
    assert client().post("/api/nothing", headers=JSON, content=chunks).status_code == 400


@pytest.mark.parametrize("body", ["", "[1]", "nonsense", '"text"', "[" * 100_000])
def test_what_is_no_question_is_refused_with_words(body):
    answer = client().post("/api/nothing", headers=JSON, content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods_are_not_answered(method):
    assert client().request(method, "/").status_code == 405


@pytest.mark.parametrize("path", ["/", "/explorer.js", "/api/models", "/nothing"])
def test_every_answer_keeps_the_page_to_itself(path):
    headers = client().get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path", ["/../pyproject.toml", "/%2e%2e/app.py", "/..%2fapp.py", "//etc/passwd", "/static/../../app.py"]
)
def test_no_other_file_can_be_read(path):
    assert client().get(path).status_code in (404, 400)


def test_a_reachable_server_demands_its_token():
    one = client(token="secret")
    assert one.get("/").status_code == 401
    assert one.get("/?token=wrong").status_code == 401
    assert one.post("/api/models", headers=JSON, content="{}").status_code == 401
    welcome = one.get("/?token=secret")
    assert (welcome.status_code, welcome.headers["location"]) == (303, "/")
    assert "httponly" in welcome.headers["set-cookie"].lower()
    assert "samesite=strict" in welcome.headers["set-cookie"].lower()
    assert one.get("/").status_code == 200  # with the cookie, which the client keeps
    assert one.get("/api/models").json()["models"] == []
