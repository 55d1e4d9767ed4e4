"""Which network a run measured, said from its manifest."""

import pytest

from wanbench.methods.lab import network


@pytest.mark.parametrize(
    "lab, n, said",
    [
        (
            {"kind": "local", "links": [{"delay_ms": 2.0}, {"delay_ms": 40.0}], "hosts": []},
            2,
            "The network is emulated: 2 links with a one-way delay of 2.0 to 40.0 ms at the start of the run.",
        ),
        (
            {
                "kind": "aws+gcp",
                "links": [],
                "hosts": [
                    {"region": "aws:eu-west-1", "instance_type": "t3.small"},
                    {"region": "gcp:us-west1", "instance_type": "e2-small"},
                ],
            },
            2,
            "The network is the real one between 2 hosts of lab aws+gcp (e2-small, t3.small) in 2 regions. None of",
        ),
    ],
)
def test_the_network_is_said(lab, n, said):
    finding = network(lab)
    assert finding.sentence.startswith(said) and finding.n == n
