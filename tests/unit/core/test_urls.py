"""Which URLs hold a password, by the function and by the pattern that the forms of flows are given."""

import re

import pytest

from evalake.core.errors import UsageError
from evalake.core.redaction import NO_PASSWORD, has_password, require_no_password


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://reader:s3cret@host/tarsy",
        "postgresql+pg8000://:s3cret@host:5432/tarsy",
        "postgresql://reader:s3@cret@host/tarsy",
        "postgresql://reader:s3/cret@host/tarsy",
        "postgresql://reader:s3%40cret@host/tarsy",
        "postgresql://host/tarsy?user=reader&PassWord=s3cret",
        "postgresql://host/tarsy?sslpassword=s3cret",
        "s3://AKIA:s3cret@bucket/lake",
        "https://account.blob.core.windows.net/lake?sv=2024&sig=s3cret",
        "https://host/v1?api_key=s3cret",
        "postgresql://reader:s3 cret@host/tarsy",
        "postgresql://a reader:s3\tcret@host/tarsy",
        "https://s3cret@host/v1",
        "https://host/v1?api-key=s3cret",
        "https://host/v1?key=s3cret",
        "https://host/v1?oauth2.token=s3cret",
        "https://host/v1#access_token=s3cret",
        "postgresql://host/tarsy?user=reader;password=s3cret",
        "starter\npostgresql://reader:s3cret@host/tarsy",
    ],
)
def test_a_password_is_found(url: str) -> None:
    assert has_password(url)
    assert re.search(NO_PASSWORD, url) is None
    with pytest.raises(UsageError) as refused:
        require_no_password("a dataset", url, "set PGPASSWORD")
    assert "s3" not in str(refused.value).replace("s3://…", "")


@pytest.mark.parametrize(
    "url",
    [
        "starter",
        "/data/a:b@c.jsonl",
        "postgresql://reader@host:5432/tarsy",
        "postgresql://host/tarsy?sslmode=require",
        "s3://bucket/lake",
        "abfss://container@account.dfs.core.windows.net/lake",
        "http://127.0.0.1:9000/v1",
        "https://host/v1?monkey=1",
        "https://host/v1?encode=1&primary_key=id#part",
        "",
    ],
)
def test_what_holds_none_is_left_alone(url: str) -> None:
    assert not has_password(url)
    require_no_password("a dataset", url, "set PGPASSWORD")
