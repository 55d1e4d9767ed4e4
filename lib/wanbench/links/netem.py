"""stub"""


def trial_commands():
    return ["qdisc add dev lo root handle 1: htb", "qdisc add dev lo parent 1:1 netem delay 1ms"]
