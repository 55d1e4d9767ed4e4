"""
Google's Compute API as the package google-cloud-compute describes it: its paths, query parameters, bodies and values.
"""

import re
from functools import cache
from importlib import import_module
from inspect import signature

from google.protobuf.json_format import ParseError
from lazily import lazily

compute_v1 = lazily("google.cloud.compute_v1")

SERVICES = (
    "disks",
    "firewalls",
    "images",
    "instances",
    "machine_types",
    "networks",
    "projects",
    "regions",
    "subnetworks",
    "global_operations",
    "region_operations",
    "zone_operations",
)


class Refused(Exception):
    """An answer of status `status`, with a reason."""

    def __init__(self, status, reason):
        super().__init__(reason)
        self.status, self.reason = status, reason


@cache
def routes():
    """Tuples of (method of HTTP, pattern of the path, (service, operation), type of the request, field of its body)."""
    found = []
    for service in SERVICES:
        title = "".join(word.capitalize() for word in service.split("_"))
        client = getattr(compute_v1, f"{title}Client")
        base = import_module(f"google.cloud.compute_v1.services.{service}.transports.rest_base")
        for name, kind in vars(getattr(base, f"_Base{title}RestTransport")).items():
            if not hasattr(kind, "_get_http_options"):
                continue
            operation = re.sub(r"(?<!^)(?=[A-Z])", "_", name.removeprefix("_Base")).lower()
            method = getattr(client, f"{operation}_unary", None) or getattr(client, operation)
            request = signature(method).parameters["request"].annotation.__args__[0]
            [how] = kind._get_http_options()
            pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", how["uri"]) + "$")
            found.append((how["method"].upper(), pattern, (service, operation), request, how.get("body")))
    return found


def camel(name):
    """The name of a field in JSON."""
    first, *others = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in others)


def check_enums(message, where=""):
    """Google's types have enumerations for many fields that are plain text: other values are refused."""
    kind = type(message)
    for name, field in kind.meta.fields.items():
        value = getattr(message, name)
        if hasattr(value, "keys"):
            continue
        allowed = vars(kind).get("".join(word.capitalize() for word in name.rstrip("_").split("_")))
        for each in value if field.repeated else [value]:
            if isinstance(each, str) and each and hasattr(allowed, "__members__"):
                if each not in allowed.__members__ or each.startswith("UNDEFINED_"):
                    raise Refused(400, f"Invalid value for field '{where}{camel(name)}': '{each}'")
            elif field.message and type(each).pb(each).ByteSize():
                check_enums(each, f"{where}{camel(name)}.")


def checked(verb, path, query, body):
    """(service, operation) and the fields of a request, its body under "body"; Refused where it is not allowed."""
    matching = ((pattern.match(path), *rest) for method, pattern, *rest in routes() if method == verb)
    try:
        found, called, request, body_field = next(each for each in matching if each[0])
    except StopIteration:
        raise Refused(404, f"no path {verb} {path}") from None
    known = {camel(name): name for name in request.meta.fields}
    given = found.groupdict()
    for key, value in query:
        if key not in known and key != "$alt":
            raise Refused(400, f'Invalid JSON payload received. Unknown name "{key}"')
        given[known.get(key, key)] = value
    if body and not body_field:
        raise Refused(400, "no body is allowed")
    if body_field:
        try:
            given["body"] = request.meta.fields[body_field].message.from_json(body)
        except ParseError as error:
            raise Refused(400, f"Invalid JSON payload received. {error}") from None
        check_enums(given["body"])
    return called, given
