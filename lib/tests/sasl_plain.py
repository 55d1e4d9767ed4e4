"""A cluster that asks its clients for names and passwords, for tests of clients that are refused."""

from collections.abc import Mapping, Sequence

from wanbench.errors import ParameterError
from wanbench.measure.kafka.access import Access, Secret, jaas_config
from wanbench.measure.kafka.security import LISTENERS, Security, Tls
from wanbench.measure.labs.base import Host


class SaslPlain(Security):
    """
    Names and passwords (SASL/PLAIN), to test clients that are refused.

    Brokers and controllers talk in plain text and may do everything; users may do what access control lists allow. The
    brokers' settings hold the passwords: show and keep them through `wanbench.measure.kafka.access.without_secrets`.

    Parameters
    ----------
    users : mapping of str to str
        Passwords by name.
    super_users : sequence of str
        Users who may do everything.
    encrypted : bool
        Whether clients use TLS as well.
    """

    kind = "sasl_plain"

    def __init__(self, users: Mapping[str, str], super_users: Sequence[str] = (), *, encrypted: bool = False):
        if not users or set(super_users) - set(users):
            raise ParameterError("there is at least one user, and super users are some of the users.")
        if not all(name.isidentifier() for name in users):
            raise ParameterError("users' names must be letters, digits and '_', no digit first.")
        self._passwords = {name: Secret(password, "the caller") for name, password in users.items()}
        self.super_users = tuple(super_users)
        self.tls = Tls() if encrypted else None
        protocol = "SASL_SSL" if encrypted else "SASL_PLAINTEXT"
        self.protocols = {**dict.fromkeys(LISTENERS, "PLAINTEXT"), "CLIENT": protocol}

    def broker_settings(self, host: Host) -> dict[str, str]:
        passwords = {f"user_{name}": password.reveal() for name, password in self._passwords.items()}
        return {
            **(self.tls.broker_settings(host) if self.tls else {}),
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.client.plain.sasl.jaas.config": jaas_config("PLAIN", **passwords),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            "super.users": ";".join(f"User:{name}" for name in ("ANONYMOUS", *self.super_users)),
        }

    def access(self, user: str | None = None) -> Access:
        """What a user needs; without a name, the first super user or else the first user."""
        name = user or next(iter((*self.super_users, *self._passwords)))
        if name not in self._passwords:
            raise ParameterError(f"no user {name!r}.")
        authority = self.tls.authority_pem if self.tls else None
        return Access(self.protocols["CLIENT"], "PLAIN", name, self._passwords[name], authority)
