"""Whom a service believes."""

from ipaddress import ip_network
from pathlib import Path

from evalake.core.configuration import read_configuration
from evalake.server.settings import Settings
from evalake.storage.lake import Lake


def test_the_configuration_names_proxies_by_address_or_network(tmp_path: Path) -> None:
    file = tmp_path / "evalake.toml"
    file.write_text('[service]\ntrusted_proxies = ["10.0.0.0/8", "::1"]\n')
    proxies = read_configuration(file).service.trusted_proxies
    assert proxies == (ip_network("10.0.0.0/8"), ip_network("::1/128"))


def test_a_service_is_open_without_a_token_and_without_proxies(tmp_path: Path) -> None:
    file = tmp_path / "evalake.toml"
    file.write_text("")
    lake = Lake(str(tmp_path / "lake"))
    assert Settings(lake=lake, configuration_file=str(file)).is_open
    assert not Settings(lake=lake, configuration_file=str(file), token="t").is_open
    file.write_text('[service]\ntrusted_proxies = ["::1"]\n')
    assert not Settings(lake=lake, configuration_file=str(file)).is_open
