"""The table of rights as it stands in docs/operating.md, made from the one in the code."""

from __future__ import annotations

from stream_cgzsl.bus.access import ACCESS, Access
from stream_cgzsl.schemas.roles import ROLES


def rows() -> list[str]:
    head = [
        "| user | Read | Write | Describe | group (Read) | transactional id (Write) | what for |",
        "|---|---|---|---|---|---|---|",
    ]
    return [*head, *(_row(name, access) for name, access in ACCESS.items())]


def _row(name: str, access: Access) -> str:
    also = f"; Create, Describe and DescribeConfigs on {_roles(access.create)}" if access.create else ""
    cells = (
        name,
        _roles(access.read),
        _roles(access.write),
        _roles(access.describe),
        access.group or "",
        access.transactional_id or "",
        f"{access.purpose}{also}",
    )
    return "| " + " | ".join(cells) + " |"


def _roles(roles: tuple[str, ...]) -> str:
    return "all topics" if set(roles) == set(ROLES) else ", ".join(roles)


if __name__ == "__main__":
    print("\n".join(rows()))
