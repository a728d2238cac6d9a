"""On a cluster with ACLs, every kind of user works with exactly the rights of the table, and with none less."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.request import urlopen

import pytest
from acls import Operator, login, printed_rights, url_of
from helpers import (
    CLASSES,
    NO_DESCRIBE,
    InThread,
    Producer,
    learner,
    letters,
    questions_about,
    rows_of,
    scorer,
    settings_for,
    wait_for_answers,
    wait_for_window,
)
from own_broker import PASSWORDS, OwnBroker
from patience import until

from stream_cgzsl.bus import Right, acls, connect
from stream_cgzsl.bus.acls import ACLS
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.cli import main
from stream_cgzsl.errors import Refused
from stream_cgzsl.evaluation import published
from stream_cgzsl.report.live import watch
from stream_cgzsl.runtime.metrics import EvaluatorMetrics
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.schemas import Holdout, Message
from stream_cgzsl.serving.projections import Projections
from stream_cgzsl.windows import ledger
from stream_cgzsl.workers.evaluator import EvaluatorWorker

TOPICS = Topics("guarded")
NOT_JSON = Message(b"nobody", b"this is no vector")


def evaluator(settings: Settings) -> InThread:
    return InThread(EvaluatorWorker, settings, EvaluatorMetrics())


WORKERS: dict[str, Callable[..., InThread]] = {"learner": learner, "scorer": scorer, "evaluator": evaluator}


@dataclass
class Guarded:
    """A stream whose users each have their rights of the table, and nothing more."""

    broker: OwnBroker
    operator: Operator

    def url(self, user: str) -> str:
        return login(self.broker, user)

    def worker(self, user: str) -> InThread:
        with connect(self.url(user)) as bus:
            settings = settings_for(bus, TOPICS, **NO_DESCRIBE)
        return WORKERS[user](settings.model_copy(update={"bus": self.url(user)}))

    def feed(self) -> None:
        """Sends the records of one window, some of them unusable."""
        with connect(self.url("producer")) as bus:
            producer = Producer(bus, TOPICS)
            producer.describe(*CLASSES)
            producer.teach(*CLASSES[:4], purpose=uuid.uuid4().int % 2**31)
            producer.events("holdout", *(Holdout(class_id=CLASSES[0], vector=row) for row in rows_of(CLASSES[0])))
            for role in ("features", "holdout"):
                producer.send(role, NOT_JSON)
            producer.boundary()

    def ask(self) -> None:
        """Sends samples, one of them unusable."""
        with connect(self.url("client")) as bus:
            Producer(bus, TOPICS).ask(questions_about(CLASSES[0], tag=uuid.uuid4().hex))
            Producer(bus, TOPICS).send("samples", NOT_JSON)

    def window(self) -> None:
        """Sends the records of one window and learns it."""
        with connect(self.url("auditor")) as bus, self.worker("learner") as worker:
            number = len(ledger.read_all(bus, TOPICS)) or 1  # a new stream starts with its genesis record
            self.feed()
            wait_for_window(bus, number, TOPICS, worker.alive)


@pytest.fixture(scope="module")
def guarded(own_broker: OwnBroker) -> Iterator[Guarded]:
    """The operator creates the topics and the learner commits a window, with the printed rights only."""
    operator = Operator(own_broker)
    for user, kind in ACLS.items():
        operator.give(user, kind.rights(TOPICS))
    made = Guarded(own_broker, operator)
    assert (
        main(["topics", "create", "--bus", made.url("operator"), "--prefix", TOPICS.prefix, "--partitions", "2"]) == 0
    )
    made.window()
    yield made
    operator.close()


def test_the_printed_commands_give_the_rights_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["topics", "acls", "--bus", "kafka://mallory:secret@one:1,two:2", "--prefix", "birds"]
    assert main([*command, "--topics", "features=vectors"]) == 0
    printed = capsys.readouterr().out
    topics = Topics("birds", {"features": "vectors"})
    wanted = [(f"User:birds-{user}", right) for user, kind in ACLS.items() for right in kind.rights(topics)]
    assert sorted(printed_rights(printed)) == sorted(wanted)
    assert "--bootstrap-server one:1,two:2 " in printed and "secret" not in printed


def test_a_watcher_sees_the_stream_but_not_the_scorers_group(guarded: Guarded) -> None:
    stop, addresses = threading.Event(), queue.Queue[str]()
    where = (guarded.url("watcher"), TOPICS, "127.0.0.1", 0, stop, addresses.put)
    thread = threading.Thread(target=watch, args=where, daemon=True)
    thread.start()
    with urlopen(f"{addresses.get(timeout=60)}events", timeout=60) as events:
        lag = next(line for line in events if b'"samples":' in line and b'"features":' in line)
        state = next(line for line in events if b'"state":' in line)
    stop.set()
    thread.join(60)
    assert b'"samples":null' in lag
    assert b'"state":"following","problem":null' in state


def test_a_refused_asynchronous_commit_is_raised_by_the_next_one(guarded: Guarded) -> None:
    right = next(right for right in ACLS["scorer"].rights(TOPICS) if right.kind == "group")
    with connect(guarded.url("scorer")) as bus, bus.subscribe(TOPICS["samples"], right.name) as member:
        until(lambda: bool(member.poll(0.2, 1) or member.assignment()))
        offsets = dict.fromkeys(member.assignment(), 0)
        with guarded.operator.without("scorer", right), pytest.raises(Refused, match=right.name):
            for _ in range(100):
                member.commit_soon(offsets)
                time.sleep(0.05)


def test_commands_for_one_user(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["topics", "acls", "--bus", "kafka://one", "--prefix", "birds", "--for", "follower"]
    assert main([*command, "--principal", "User:CN=my app", "--command-config", "admin.properties"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "kafka-acls.sh --bootstrap-server one:9092 --command-config admin.properties --add --allow-principal "
        "'User:CN=my app' --operation Read --topic birds.windows --topic birds.projections"
    ]


def test_everyone_works_with_the_rights_of_the_table(guarded: Guarded, capsys: pytest.CaptureFixture[str]) -> None:
    with connect(guarded.url("auditor")) as bus, connect(guarded.url("client")) as client:
        number = len(ledger.read_all(bus, TOPICS))
        before = len(letters(bus, TOPICS))
        workers = [guarded.worker(user) for user in WORKERS]
        with workers[0] as learns, workers[1] as scores, workers[2] as evaluates:
            guarded.feed()
            guarded.ask()
            assert wait_for_window(bus, number, TOPICS, learns.alive).kind == "train"
            questions = questions_about(CLASSES[0], tag="all")
            Producer(client, TOPICS).ask(questions)
            answers = wait_for_answers(client, questions, TOPICS, scores.alive)
            while (newest := published.newest(bus, TOPICS)) is None or newest.generation < number:
                evaluates.alive()
                time.sleep(0.1)
        assert {answer.status for answer in answers.values()} == {"ok"}
        dead = {letter.topic for letter in letters(bus, TOPICS)[before:]}
        assert dead == {TOPICS[role] for role in ("features", "samples", "holdout")}
    with Projections.follow(guarded.url("follower"), TOPICS.prefix) as followed:
        assert followed.wait(20)
        assert followed.classify(rows_of(CLASSES[0], 1))[0][0].class_id in CLASSES
    for user, *command in (
        ("auditor", "check"),
        ("auditor", "replay"),
        ("auditor", "dead-letters", "show"),
        ("operator", "topics", "check"),
        ("operator", "rollback", "1"),
        ("operator", "dead-letters", "redrive"),
        ("producer", "boundary"),
        ("watcher", "drift"),
        ("feeder", "feed", "synthetic:classes=12,attributes=8,features=16", "--tasks", "1"),
    ):
        assert main([*command, "--bus", guarded.url(user), "--prefix", TOPICS.prefix]) == 0, command
        shown = capsys.readouterr()
        assert PASSWORDS[user] not in shown.out + shown.err


@pytest.mark.parametrize("user", WORKERS)
def test_a_missing_right_is_named_at_the_start(guarded: Guarded, user: str) -> None:
    rights = list(ACLS[user].rights(TOPICS))
    said = []
    for right in rights:
        with guarded.operator.without(user, right), connect(guarded.url(user)) as bus, pytest.raises(Refused) as raised:
            acls.require(bus, TOPICS, user)
        said.append(str(raised.value))
    assert said == [
        f"{bus.url}: this user has no {right}; give it that right: stream-cgzsl topics acls --for {user} "
        f"--prefix {TOPICS.prefix} prints the commands"
        for right in rights
    ]


@pytest.mark.parametrize("user", WORKERS)
def test_a_right_removed_later_stops_the_worker_and_is_named(
    guarded: Guarded, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded.window()
    guarded.feed()
    monkeypatch.setattr(acls, "require", lambda *_: None)  # as if it were removed after the start
    rights = list(ACLS[user].rights(TOPICS))
    named = []
    for right in rights:
        with guarded.operator.without(user, right), pytest.raises(Refused) as raised, guarded.worker(user) as worker:
            guarded.ask()
            worker.wait()
        said = str(raised.value).partition(": this user has no ")[2].partition(";")[0]
        hidden = str(
            right._replace(operation="Describe")
        )  # what is missing first if this was the only right on a topic
        named.append(right if said in (str(right), hidden) else said)
    assert named == rights


@pytest.mark.parametrize(("command", "user"), [("learn", "learner"), ("score", "scorer"), ("evaluate", "evaluator")])
def test_a_worker_without_a_right_exits_with_one_line_and_code_4(guarded: Guarded, command: str, user: str) -> None:
    right = Right("Write", "topic", TOPICS["dead-letters"])
    environment = {**os.environ, "CGZSL_KAFKA_PASSWORD": PASSWORDS[user]}
    arguments = [command, "--bus", url_of(guarded.broker, user), "--prefix", TOPICS.prefix, "--log-level", "debug"]
    with guarded.operator.without(user, right):
        ended = subprocess.run(
            [sys.executable, "-m", "stream_cgzsl", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert ended.returncode == 4
    said = [line for line in ended.stderr.splitlines() if line.startswith("stream-cgzsl:")]
    assert len(said) == 1 and str(right) in said[0]
    assert "Traceback" not in ended.stderr
    assert PASSWORDS[user] not in ended.stdout + ended.stderr


def test_a_topic_hidden_from_this_user_is_not_reported_as_missing(
    guarded: Guarded, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["topics", "check", "--bus", guarded.url("follower"), "--prefix", TOPICS.prefix]
    assert main(command) == Refused.exit_code
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9 and all("this user has no Describe on topic" in line for line in lines)
