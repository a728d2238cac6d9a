"""Does it answer: how many, how fast, by which generation, and how certain."""

from __future__ import annotations

from panels import Dashboard, Panel
from queries import OF_SCORER, RATE, mean, quantile, quantiles

ANSWERS = [
    Panel(
        "Answers",
        "`invalid`: not a valid sample; `no-model`: no generation can answer yet; `unknown`: below --reject-score.",
        [(f"sum by (stream, status) (rate(cgzsl_predictions_total{{}}{RATE}))", "{{stream}} {{status}}")],
        unit="reqps",
        width=12,
    ),
    Panel(
        "Waiting samples",
        "On the bus and not answered yet.",
        [('sum by (stream) (cgzsl_lag_records{role="samples"})', "{{stream}}")],
        width=12,
    ),
    Panel(
        "Time to an answer",
        "From the timestamp of a batch's oldest sample until its answer is written.",
        quantiles("cgzsl_answer_seconds"),
        unit="s",
        width=12,
    ),
    Panel(
        "Time of a batch",
        "From reading a batch until its answers are written.",
        quantiles("cgzsl_batch_seconds"),
        unit="s",
        width=12,
    ),
]

GENERATIONS = [
    Panel(
        "Generation served",
        "By each scorer. They differ for a moment after each window, not longer.",
        [(f"cgzsl_generation_number{{}} {OF_SCORER}", "{{instance}}")],
    ),
    Panel(
        "Loading a generation",
        "Mean of the last hour.",
        [(mean("cgzsl_load_seconds", "instance"), "{{instance}}")],
        unit="s",
    ),
    Panel(
        "Turn at the last swap",
        "By which angle the projections differ from those served before.",
        [("max by (stream, statistic) (cgzsl_swap_drift_radians{} >= 0)", "{{stream}} {{statistic}}")],
        unit="radian",
    ),
]

CERTAINTY = [
    Panel(
        "Best scores",
        "Distribution of the best scores. A shift without a new generation means that the samples changed.",
        [(f"sum by (le) (increase(cgzsl_score_bucket{{}}{RATE}))", "{{le}}")],
        kind="heatmap",
    ),
    Panel(
        "Margins",
        "By how much the best class leads the second.",
        [(f"sum by (le) (increase(cgzsl_margin_bucket{{}}{RATE}))", "{{le}}")],
        kind="heatmap",
    ),
    Panel(
        "Median score and margin",
        "Medians of the two heatmaps.",
        [
            (quantile(0.5, "cgzsl_score", "stream"), "{{stream}} score"),
            (quantile(0.5, "cgzsl_margin", "stream"), "{{stream}} margin"),
        ],
        unit="none",
    ),
]

SCORERS = [
    Panel("Ready", "1 for each scorer that is ready.", [(f"cgzsl_ready{{}} {OF_SCORER}", "{{instance}}")], most=1),
    Panel(
        "Answers of each",
        "Scorers share the partitions of the samples; more scorers than partitions have nothing to do.",
        [(f"sum by (instance) (rate(cgzsl_predictions_total{{}}{RATE}))", "{{instance}}")],
        unit="reqps",
    ),
    Panel("Processor", "Cores in use.", [(f"rate(process_cpu_seconds_total{{}}{RATE}) {OF_SCORER}", "{{instance}}")]),
]

SERVING = Dashboard(
    uid="cgzsl-serving",
    title="stream_cgzsl: serving",
    description="Does it answer: how many, how fast, by which generation, and how certain.",
    variables={"stream": "cgzsl_build_info", "instance": 'cgzsl_build_info{worker="scorer", stream=~"$stream"}'},
    rows={"Answers": ANSWERS, "Generations": GENERATIONS, "How sure": CERTAINTY, "Scorers": SCORERS},
)
