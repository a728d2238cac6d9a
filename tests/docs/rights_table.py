"""The table of rights in docs/operating.md, made from the one in the code."""

from __future__ import annotations

from stream_cgzsl.bus.acls import ACLS, UserAcls
from stream_cgzsl.schemas.roles import ROLES


def rows() -> list[str]:
    head = [
        "| user | Read | Write | Describe | group (Read) | transactional id (Write) | what for |",
        "|---|---|---|---|---|---|---|",
    ]
    return [*head, *(_row(name, acls) for name, acls in ACLS.items())]


def _row(name: str, acls: UserAcls) -> str:
    also = f"; Create, Describe and DescribeConfigs on {_roles(acls.create)}" if acls.create else ""
    cells = (
        name,
        _roles(acls.read),
        _roles(acls.write),
        _roles(acls.describe),
        acls.group or "",
        acls.transactional_id or "",
        f"{acls.purpose}{also}",
    )
    return "| " + " | ".join(cells) + " |"


def _roles(roles: tuple[str, ...]) -> str:
    return "all topics" if set(roles) == set(ROLES) else ", ".join(roles)


if __name__ == "__main__":
    print("\n".join(rows()))
