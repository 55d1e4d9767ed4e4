"""Bodies of requests as Azure's packages describe them: fields, which of them are read-only, their types and values."""

import types
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from azure.mgmt.compute import models as compute
from azure.mgmt.network import models as network
from azure.mgmt.resource.resources import models as resource

BODIES = {
    "resourcegroups": resource.ResourceGroup,
    "virtualMachines": compute.VirtualMachine,
    "networkSecurityGroups": network.NetworkSecurityGroup,
    "securityRules": network.SecurityRule,
    "virtualNetworks": network.VirtualNetwork,
    "publicIPAddresses": network.PublicIPAddress,
    "networkInterfaces": network.NetworkInterface,
    "virtualNetworkPeerings": network.VirtualNetworkPeering,
    "schedules": resource.GenericResource,
}
"""What is put, by the kind of the resource."""
OPEN = ("vmSize",)
"""Fields of which the package says that its list of values is out of date."""


class Refused(Exception):
    """An answer of status `status`, with Azure's code and a reason."""

    def __init__(self, status, code, reason):
        super().__init__(reason)
        self.status, self.code, self.reason = status, code, reason


def checked(kind, body):
    """The body of a request; Refused where the model of its kind does not allow it."""
    if kind not in BODIES:
        raise Refused(400, "InvalidResourceType", f"nothing is known of {kind}")
    _check(body, BODIES[kind], kind)
    return body


@cache
def _fields(model):
    """Name in JSON to (whether it is only read, its type) of a model."""
    model({})  # the first one made finds out the names
    models = {"_models": next(each for each in (compute, network, resource) if _is_of(model, each))}
    hints = {}
    for each in reversed(model.__mro__):
        if "__annotations__" in vars(each) and _is_of(each, models["_models"]):
            hints |= get_type_hints(each, localns=models)
    return {
        field._rest_name: (field._visibility == ["read"], hints[name])
        for name, field in model._attr_to_rest_field.items()
    }


def _is_of(model, models):
    return model.__module__.startswith(models.__name__ + ".")


def _check(value, kind, where):
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return
    if origin in (Union, types.UnionType):
        return _check_one_of(value, [each for each in inner if each is not type(None)], where)
    if origin is list:
        _demand(isinstance(value, list), where, "a list", value)
        for number, each in enumerate(value):
            _check(each, inner[0], f"{where}[{number}]")
    elif origin is dict:
        _demand(isinstance(value, dict), where, "an object", value)
        for name, each in value.items():
            _check(each, inner[1], f"{where}.{name}")
    elif hasattr(kind, "_attr_to_rest_field") or hasattr(kind, "_calculated"):
        _check_model(value, kind, where)
    elif issubclass(kind, Enum):
        allowed = [each.value for each in kind]
        _demand(value in allowed, where, f"one of {', '.join(allowed)}", value)
    elif kind is float:
        _demand(isinstance(value, int | float) and not isinstance(value, bool), where, "a number", value)
    else:
        _demand(type(value) is kind, where, f"of type {kind.__name__}", value)


def _check_one_of(value, kinds, where):
    values = [each for each in kinds if isinstance(each, type) and issubclass(each, Enum)]
    # Where values are known, text is not any text.
    for kind in kinds if where.endswith(OPEN) else values or kinds:
        try:
            return _check(value, kind, where)
        except Refused as refused:
            reason = refused
    raise reason


def _check_model(value, kind, where):
    _demand(isinstance(value, dict), where, "an object", value)
    fields = _fields(kind)
    for name, each in value.items():
        _demand(name in fields, f"{where}.{name}", f"a field of {kind.__name__}", name)
        only_read, hint = fields[name]
        _demand(not only_read, f"{where}.{name}", "left out, as it is read-only", each)
        _check(each, hint, f"{where}.{name}")
    for name, (only_read, hint) in fields.items():
        needed = not only_read and type(None) not in get_args(hint)
        _demand(not needed or name in value, f"{where}.{name}", "given", None)


def _demand(is_so, where, allowed, given):
    if not is_so:
        raise Refused(400, "InvalidRequestContent", f"{where} must be {allowed}; given: {given!r}")
