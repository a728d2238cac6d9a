"""Does it learn: accuracies, forgetting, losses, replay, and how far windows turn the projections."""

from __future__ import annotations

from panels import Dashboard, Panel
from queries import mean

QUALITY = [
    Panel(
        "Accuracy on the holdout",
        "Per-class mean of the newest evaluated generation: seen classes, unseen classes, harmonic mean.",
        [("stream_kind:cgzsl_holdout_accuracy_ratio:max{}", "{{stream}} {{kind}}")],
        unit="percentunit",
        width=12,
        most=1,
    ),
    Panel(
        "Accuracy before learning",
        "Prequential: the previous generation classifies a window's features before they are learned.",
        [("max by (stream, kind) (cgzsl_prequential_accuracy_ratio{} >= 0)", "{{stream}} {{kind}}")],
        unit="percentunit",
        width=12,
        most=1,
    ),
    Panel(
        "Accuracy by number of examples",
        "Per-class mean on the holdout, by how many examples a class has had. It should rise with the number.",
        [("stream_examples:cgzsl_accuracy_by_examples_ratio:max{}", "{{stream}} {{examples}}")],
        unit="percentunit",
        width=24,
        most=1,
    ),
    Panel(
        "Forgetting",
        "How far the accuracy of seen classes is below the best it has been.",
        [("stream:cgzsl_forgetting_ratio:max{}", "{{stream}}")],
        unit="percentunit",
    ),
    Panel(
        "Area under the seen-unseen curve",
        "How well seen and unseen classes are recognised, independent of the offset between them.",
        [("max by (stream) (cgzsl_seen_unseen_area_ratio{} >= 0)", "{{stream}}")],
        unit="percentunit",
        most=1,
    ),
    Panel(
        "Classes",
        "Live classes of the newest generation.",
        [("max by (stream, kind) (cgzsl_classes{})", "{{stream}} {{kind}}")],
    ),
]

TRAINING = [
    Panel(
        "Losses",
        "The latest value of each term. Terms differ between learners; those without training have none.",
        [("max by (stream, term) (cgzsl_loss{})", "{{stream}} {{term}}")],
        unit="none",
    ),
    Panel(
        "Replayed features",
        "Generated in the last hour, kept or rejected because the classifier took them for another class.",
        [("sum by (stream, fate) (increase(cgzsl_replayed_features_total{}[1h]))", "{{stream}} {{fate}}")],
    ),
    Panel(
        "Turn of the projections",
        "By which angle the last window turned them. A jump without new classes is worth a look.",
        [("max by (stream, statistic) (cgzsl_projection_drift_radians{} >= 0)", "{{stream}} {{statistic}}")],
        unit="radian",
    ),
    Panel(
        "Training time",
        "Mean of the windows of the last hour.",
        [(mean("cgzsl_window_phase_seconds", "stream", 'phase="train"'), "{{stream}}")],
        unit="s",
    ),
    Panel(
        "Refreshes and updates",
        "Generations of the last hour: made anew, or from the one before by what a window changed.",
        [("sum by (stream, made) (increase(cgzsl_generations_total{}[1h]))", "{{stream}} {{made}}")],
    ),
    Panel(
        "Time of a refresh",
        "Mean of the last hour. Events that come meanwhile wait for it.",
        [(mean("cgzsl_refresh_seconds", "stream"), "{{stream}}")],
        unit="s",
    ),
    Panel(
        "Classes published",
        "In the last hour: an update publishes the classes it touched, a refresh all of them.",
        [("sum by (stream) (increase(cgzsl_published_classes_total{}[1h]))", "{{stream}}")],
    ),
    Panel(
        "Bytes published",
        "Projections of the last hour.",
        [("sum by (stream) (increase(cgzsl_published_bytes_total{}[1h]))", "{{stream}}")],
        unit="bytes",
    ),
    Panel(
        "Snapshot",
        "Size of the learner's last state on the bus.",
        [("max by (stream) (cgzsl_state_bytes{})", "{{stream}}")],
        unit="bytes",
    ),
    Panel(
        "Accelerator memory",
        "Peak since the start; 0 without an accelerator.",
        [("max by (stream) (cgzsl_device_memory_bytes{})", "{{stream}}")],
        unit="bytes",
    ),
]

EVALUATION = [
    Panel(
        "Generations not evaluated yet",
        "How far the evaluator is behind the learner.",
        [
            (
                'max by (stream) (stream_worker:cgzsl_generation_number:max{worker="learner"})'
                ' - on (stream) max by (stream) (stream_worker:cgzsl_generation_number:max{worker="evaluator"})',
                "{{stream}}",
            )
        ],
        width=6,
    ),
    Panel(
        "Evaluations",
        "In the last hour: published, or gone because compaction removed the generation before its turn.",
        [("sum by (stream, outcome) (increase(cgzsl_evaluations_total{}[1h]))", "{{stream}} {{outcome}}")],
        width=6,
    ),
    Panel(
        "Evaluation time",
        "Mean of the last hour.",
        [(mean("cgzsl_evaluation_seconds", "stream"), "{{stream}}")],
        unit="s",
        width=6,
    ),
    Panel(
        "Holdout",
        "Labelled examples the newest generation was tested with, and records not read yet.",
        [
            ("max by (stream) (cgzsl_holdout_records{})", "{{stream}} tested"),
            ('sum by (stream) (cgzsl_lag_records{role="holdout"})', "{{stream}} waiting"),
        ],
        width=6,
    ),
    Panel(
        "Worst classes",
        "Accuracy of single classes; only with --class-series N at the evaluator.",
        [("bottomk(20, max by (stream, class_id) (cgzsl_class_accuracy_ratio{}))", "{{class_id}}")],
        unit="percentunit",
        kind="table",
        width=24,
    ),
]

LEARNING = Dashboard(
    uid="cgzsl-learning",
    title="stream_cgzsl: learning",
    description="Does it learn: accuracies, forgetting, losses, replay, and how far windows turn the projections.",
    variables={"stream": "cgzsl_build_info"},
    rows={"How good it is": QUALITY, "Training": TRAINING, "Evaluation": EVALUATION},
)
