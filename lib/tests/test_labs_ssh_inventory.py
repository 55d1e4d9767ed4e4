"""The inventory of SSH hosts: what is wrong is named with file, host and field; and the command line of a login."""

import shlex
from copy import copy

import pytest
import yaml

from wanbench.errors import LabError, ParameterError
from wanbench.measure import campaign
from wanbench.measure.experiments import Ping
from wanbench.measure.labs import matrix_links
from wanbench.measure.labs.ssh import SshHost, SshLab, read_inventory
from wanbench.measure.labs.ssh import lab as facts
from wanbench.measure.plan import make_plan


@pytest.fixture
def content(tmp_path):
    for name, mode in (("key", 0o600), ("known hosts", 0o644)):
        (tmp_path / name).touch(mode)
    return {
        "defaults": {"user": "ada", "key_file": "key", "known_hosts_file": "known hosts", "jump": "bottleneck"},
        "jumps": {"bottleneck": {"address": "bottleneck.example.org", "port": 2200}},
        "hosts": [
            {"name": "one", "region": "aws:eu-west-1", "control_address": "192.0.2.1", "address": "10.0.0.1"},
            {
                "name": "two",
                "region": "own:cellar",
                "latitude_deg": 51.5,
                "longitude_deg": 0,
                "control_address": "192.0.2.2",
                "jump": None,
                "port": 23,
            },
        ],
    }


@pytest.fixture
def read(tmp_path):
    def write_and_read(content):
        path = tmp_path / "hosts.yml"
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return read_inventory(path)

    return write_and_read


def test_a_host_may_have_an_ipv6_address_too(read, content):
    content["hosts"][0]["address_ipv6"] = "2001:db8::1"
    one, two = read(content).entries
    assert (one.host.address_ipv6, two.host.address_ipv6) == ("2001:db8::1", None)
    assert one.as_dict()["address_ipv6"] == "2001:db8::1" and "address_ipv6" not in two.as_dict()


def test_hosts_may_have_an_address_on_each_of_several_paths(read, content):
    one, two = content["hosts"]
    del one["address"]
    one["paths"] = {"private": "10.0.0.1", "internet": "192.0.2.1"}
    with pytest.raises(ParameterError, match="the same names for all hosts of a lab, or for none"):
        SshLab(["aws:eu-west-1", "own:cellar"], inventory=read(content))
    two["paths"] = {"internet": "192.0.2.2", "private": "10.0.0.2"}
    lab = SshLab(["aws:eu-west-1", "own:cellar"], inventory=read(content))
    assert lab.path_names == ("internet", "private") and all(host.paths is lab for host in lab.all_hosts())
    seen = copy(lab.host("own:cellar"))
    before = lab.settings["hosts"]
    for path, addresses in (("private", ("10.0.0.1", "10.0.0.2")), ("internet", ("192.0.2.1", "192.0.2.2"))):
        lab.use(path)
        assert (lab.host("aws:eu-west-1").address, seen.address) == addresses
        assert before == [entry.as_dict() for entry in lab._entries], "a run goes on whichever path was used last"
    with pytest.raises(ParameterError, match="path is 'vpn'; allowed: 'internet', 'private'"):
        lab.use("vpn")


def test_hosts_have_their_own_fields_and_the_defaults(read, content, tmp_path):
    inventory = read(content)
    one, two = (entry.host for entry in inventory.entries)
    assert inventory.regions == ("aws:eu-west-1", "own:cellar")
    assert (one.address, two.address) == ("10.0.0.1", "192.0.2.2"), "measured over what is logged in to"
    assert two.login.command(["echo", "a b"], 30)[-6:] == ["23", "-l", "ada", "192.0.2.2", "--", "echo 'a b'"]
    words = one.login.command(["true"], 30)
    assert "-oStrictHostKeyChecking=yes" in words and "-oBatchMode=yes" in words
    assert f'-oUserKnownHostsFile="{tmp_path}/known hosts"' in words
    [proxy] = [word for word in words if word.startswith("-oProxyCommand=")]
    through = shlex.split(proxy.removeprefix("-oProxyCommand="))
    assert "-oStrictHostKeyChecking=yes" in through and through[-5:] == [
        "-W",
        "[192.0.2.1]:22",
        "-l",
        "ada",
        "bottleneck.example.org",
    ]
    assert inventory.entries[1].as_dict() == {
        "name": "two", "region": "own:cellar", "address": "192.0.2.2", "latitude_deg": 51.5, "longitude_deg": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"port": 70_000}, "host 'one': port is 70000; allowed: a whole number from 1 to 65535"),
        ({"prot": 22}, "host 1: no field is called 'prot'; allowed: name, region"),
        ({"user": "-oProxyCommand=x"}, "host 'one': user is '-oProxyCommand=x'; allowed: one word"),
        ({"control_address": "-w"}, "host 'one': control_address is '-w'; allowed: a host name"),
        ({"address": "one.example.org"}, "host 'one': address is 'one.example.org'; allowed: an IPv4 address"),
        ({"address_ipv6": "10.0.0.9"}, "host 'one': address_ipv6 is '10.0.0.9'; allowed: an IPv6 address"),
        ({"region": "own:attic"}, "host 'one': region 'own:attic' needs both latitude_deg and longitude_deg"),
        ({"latitude_deg": 1}, "host 'one': region 'aws:eu-west-1' needs both latitude_deg and longitude_deg"),
        ({"key_file": "none"}, "host 'one': key_file is .*none'; allowed: a file that exists"),
        ({"key_file": "known hosts"}, "host 'one': key_file is .* which other users may access .mode 644."),
        ({"jump": "door"}, "host 'one': jump is 'door'; allowed: one of the jumps: bottleneck"),
        ({"jump": None, "proxy_command": ["nc", "%r"]}, "host 'one': proxy_command is '%r'; allowed: percent"),
        ({"proxy_command": ["nc"]}, "host 'one' has both jump and proxy_command"),
        ({"sudo": 1}, "host 'one': sudo is 1; allowed: True or False"),
        ({"paths": {"vpn": "10.0.0.1"}}, "host 'one' has both address and paths; allowed: one of them"),
        ({"name": "two"}, "two hosts have the name 'two'"),
        ({"address": "192.0.2.2"}, "two hosts have the address '192.0.2.2'"),
    ],
)
def test_a_field_that_is_wrong_is_named_with_its_host(read, content, change, said):
    content["hosts"][0] |= change
    with pytest.raises(ParameterError, match=rf"hosts\.yml.*{said}"):
        read(content)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hosts:\n  - name: a\n    name: b\n", r"hosts\.yml, line 3: key 'name' is repeated"),
        ("hosts: [", r"hosts\.yml, line 1: "),
        ("hosts: []", r"hosts is \[\]; allowed: a list of hosts"),
        ("- a", r"hosts\.yml is \['a'\]; allowed: fields with values"),
        ("host: []", "no field is called 'host'; allowed: hosts, defaults, jumps"),
    ],
)
def test_a_file_that_is_no_inventory_is_refused(read, text, said):
    with pytest.raises(ParameterError, match=said):
        read(text)


def test_a_plan_needs_hosts_in_all_its_regions(read, content):
    inventory = read(content)
    with pytest.raises(
        ParameterError, match="a host is needed in gcp:us-west1, which has 0; regions of the inventory: aws:eu"
    ):
        SshLab(["gcp:us-west1"], inventory=inventory)
    links = matrix_links({("aws:eu-west-1", "aws:us-east-1"): 70})
    plan = make_plan(regions=["aws:eu-west-1", "aws:us-east-1"], experiments=[Ping(count=1)])
    with pytest.raises(ParameterError, match="lab 'ssh': missing a required argument: 'inventory'"):
        campaign.run(plan, links, lab="ssh", campaign="none")
    with pytest.raises(ParameterError, match="lab 'local': got an unexpected keyword argument 'inventory'"):
        campaign.run(plan, links, lab="local", lab_options={"inventory": "hosts.yml"}, campaign="none")


def test_the_command_that_installs_is_that_of_the_host():
    found = {"tools": {"ping": "ping", "java": 'openjdk version "11.0.2"'}, "manager": "dnf"}
    assert facts.lacking(found, facts.PATHS) == ["iperf3"]
    assert "java" in facts.lacking(found, facts.KAFKA)
    assert (
        facts.install_command(found, ["java", "sar", "sadf"]) == "sudo dnf install -y java-17-openjdk-headless sysstat"
    )
    assert facts.install_command({**found, "manager": None}, ["iperf3", "ss"]) == "install iperf3, ss"


def test_a_host_without_a_login_cannot_be_opened():
    with pytest.raises(LabError, match="a/0 cannot be opened: it has no login"):
        SshHost("a/0", "a", "").open()
