"""Is the stream healthy: which workers are active, what comes in, what waits, what cannot be used."""

from __future__ import annotations

from panels import Dashboard, Panel
from queries import OF_WORKER, RATE, mean

_WORKER = "{{worker}} {{instance}}"

NOW = [
    Panel(
        "Learners at work",
        "One learner of a stream holds the lock; others are standbys.",
        [("stream:cgzsl_learner_active:sum{}", "{{stream}}")],
        unit="none",
        kind="stat",
        width=4,
        steps=((None, "red"), (1, "green"), (2, "orange")),
    ),
    Panel(
        "Workers ready",
        "Workers that are ready (/readyz), by kind.",
        [("stream_worker:cgzsl_ready:sum{}", "{{stream}} {{worker}}")],
        unit="none",
        kind="stat",
        width=6,
        steps=((None, "red"), (1, "green")),
    ),
    Panel(
        "Newest generation",
        "Window n makes generation n.",
        [('stream_worker:cgzsl_generation_number:max{worker="learner"}', "{{stream}}")],
        unit="none",
        kind="stat",
        width=4,
    ),
    Panel(
        "Classes",
        "Live classes: seen have had examples, unseen are only described.",
        [("max by (stream, kind) (cgzsl_classes{})", "{{stream}} {{kind}}")],
        unit="none",
        kind="stat",
        width=6,
    ),
    Panel(
        "Oldest record waits",
        "Age of the first record that waits for the next window; 0 when none waits.",
        [
            (
                "(time() - max by (stream) (cgzsl_open_window_timestamp_seconds{} > 0))"
                " or 0 * max by (stream) (cgzsl_open_window_timestamp_seconds{})",
                "{{stream}}",
            )
        ],
        unit="s",
        kind="stat",
        width=4,
    ),
]

RECORDS = [
    Panel(
        "Records taken into windows",
        "Input records by what became of them, counted when their window is committed.",
        [("sum by (stream, fate) (stream_role_fate:cgzsl_records:rate5m{})", "{{stream}} {{fate}}")],
        unit="cps",
    ),
    Panel(
        "Waiting for the next window",
        "Features wait for their marker; attributes and control should not wait.",
        [('stream_role:cgzsl_lag_records:sum{role=~"attributes|features|control"}', "{{stream}} {{role}}")],
    ),
    Panel(
        "Dead letters",
        "Records that could not be used in the last hour, by reason (docs/events.md).",
        [("sum by (stream, reason) (increase(cgzsl_dead_letters_total{}[1h]))", "{{stream}} {{reason}}")],
    ),
]

WINDOWS = [
    Panel(
        "Windows committed",
        "In the last hour, by kind and by the policy that closed them.",
        [("sum by (stream, kind, policy) (increase(cgzsl_windows_total{}[1h]))", "{{stream}} {{kind}} ({{policy}})")],
    ),
    Panel(
        "Time of each step",
        "Mean of the last hour: reading a window, training it, committing it.",
        [(mean("cgzsl_window_phase_seconds", "stream, phase"), "{{stream}} {{phase}}")],
        unit="s",
    ),
    Panel(
        "Transactions",
        "Commits of the last hour by how they ended. After `unknown` the ledger is read again to find out.",
        [("sum by (stream, outcome) (increase(cgzsl_transactions_total{}[1h]))", "{{stream}} {{outcome}}")],
    ),
]

WORKERS = [
    Panel(
        "Since the last success",
        "A window committed, a batch answered, an evaluation published. It grows on a quiet stream, which is normal.",
        [(f"(time() - (cgzsl_last_success_timestamp_seconds{{}} > 0)) {OF_WORKER}", _WORKER)],
        unit="s",
    ),
    Panel(
        "Bus errors",
        "Times in 5 minutes that the bus did not answer; workers retry.",
        [(f"increase(cgzsl_bus_errors_total{{}}[5m]) {OF_WORKER}", _WORKER)],
    ),
    Panel(
        "Shares changed",
        "Times in 5 minutes that a learner or evaluator took over, or a scorer's partitions changed.",
        [(f"increase(cgzsl_rebalances_total{{}}[5m]) {OF_WORKER}", _WORKER)],
    ),
    Panel(
        "Processor", "Cores in use.", [(f"rate(process_cpu_seconds_total{{}}{RATE}) {OF_WORKER}", _WORKER)], width=12
    ),
    Panel(
        "Memory",
        "Resident memory of each worker.",
        [(f"process_resident_memory_bytes{{}} {OF_WORKER}", _WORKER)],
        unit="bytes",
        width=12,
    ),
]

STREAM = Dashboard(
    uid="cgzsl-stream",
    title="stream_cgzsl: stream",
    description="Is the stream healthy: which workers are active, what comes in, what waits, what cannot be used.",
    variables={"stream": "cgzsl_build_info"},
    rows={"Now": NOW, "Records": RECORDS, "Windows": WINDOWS, "Workers": WORKERS},
)
