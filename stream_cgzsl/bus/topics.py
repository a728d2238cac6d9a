"""A stream's topics by role: their names, how they must be configured, and whether they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stream_cgzsl.bus.interface import Bus
from stream_cgzsl.bus.types import Right, TopicSpec
from stream_cgzsl.errors import CgzslError, Refused, TopicMisconfigured, TopicMissing, UsageError
from stream_cgzsl.schemas.foreign import DECODED_ROLES, Decoder
from stream_cgzsl.schemas.roles import ROLES

_CLEANUP_SETTINGS = {
    "keep": "cleanup.policy=delete, retention.ms=-1 and retention.bytes=-1",
    "expire": "cleanup.policy=delete",
    "compact": "cleanup.policy=compact",
}


@dataclass(frozen=True)
class Topics:
    """Topics are named `<prefix>.<role>`, except for roles that have another name in `names`.

    Records of the roles in `decoders` are not in our format: these functions read them.
    """

    prefix: str = "cgzsl"
    names: Mapping[str, str] = field(default_factory=dict)
    decoders: Mapping[str, Decoder] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.names) - set(ROLES))
        if unknown:
            raise UsageError(f"no such topic role: {', '.join(unknown)}; the roles are {', '.join(ROLES)}")
        unread = sorted(set(self.decoders) - set(DECODED_ROLES))
        if unread:
            raise UsageError(f"no decoder is possible for {', '.join(unread)}; only for {', '.join(DECODED_ROLES)}")

    def __getitem__(self, role: str) -> str:
        """The name of the topic with that role."""
        if role not in ROLES:
            raise KeyError(role)
        return self.names.get(role, f"{self.prefix}.{role}")

    def training_decoders(self) -> dict[str, str]:
        """The names of the decoders that decide what is learned, by role."""
        return {role: self.decoders[role].name for role in ("attributes", "features") if role in self.decoders}

    def specs(self, partitions: int = 1) -> list[TopicSpec]:
        """Every topic as it must be configured, with `partitions` partitions where a role may have several."""
        return [TopicSpec(self[role.name], 1 if role.single else partitions, role.cleanup) for role in ROLES.values()]

    def problems(self, bus: Bus, roles: Iterable[str] = tuple(ROLES)) -> list[CgzslError]:
        """What makes these topics unusable or unsafe to use; empty when there is nothing wrong."""
        roles, there = tuple(roles), bus.topics()
        hidden = bus.denied(Right("Describe", "topic", self[name]) for name in roles if self[name] not in there)
        found: list[CgzslError] = [
            Refused(
                f"{bus.url}: this user has no {right}; the topic is missing, or hidden from this user: stream-cgzsl "
                "topics acls prints the commands that give each kind of user its rights"
            )
            for right in hidden
        ]
        for name in roles:
            role, topic = ROLES[name], self[name]
            actual = there.get(topic)
            if any(right.name == topic for right in hidden):
                continue
            if actual is None:
                found.append(
                    TopicMissing(
                        f"{bus.url}: topic {topic!r} ({role.purpose.lower()}) is missing; "
                        f"create it with: stream-cgzsl topics create --bus {bus.url} --prefix {self.prefix}"
                    )
                )
            elif role.single and actual.partitions != 1:
                found.append(
                    TopicMisconfigured(
                        f"{bus.url}: topic {topic!r} has {actual.partitions} partitions and must have one, because a "
                        "run is reproducible only if its records have one order; recreate it with one partition"
                    )
                )
            elif not _is_safe(role.cleanup, actual.cleanup):
                found.append(
                    TopicMisconfigured(
                        f"{bus.url}: topic {topic!r} is kept as {actual.cleanup!r} and must be kept as "
                        f"{role.cleanup!r}, or records we need will be lost; set {_CLEANUP_SETTINGS[role.cleanup]}"
                    )
                )
        return found

    def require(self, bus: Bus, roles: Iterable[str]) -> None:
        """Raises the first of `problems`."""
        for problem in self.problems(bus, roles):
            raise problem


def _is_safe(required: str, actual: str) -> bool:
    """`keep` is safe where `expire` is enough. A policy that this user may not see is assumed to be right."""
    return actual in (required, "unknown") or (required == "expire" and actual == "keep")
