"""Documents to render: one like that of a real run, and odd ones. All are made up, and the same every time."""

from __future__ import annotations

from json import dumps
from math import cos, sin
from random import Random

from stream_cgzsl.report.document import (
    CurvePoint,
    FeatureMap,
    FewShotCurve,
    Figures,
    MapPoint,
    Neighbours,
    PaperRow,
    RunDocument,
    Shot,
    Similar,
    SimilarityPanel,
    StudyDocument,
    StudyRow,
    WindowLine,
)
from stream_cgzsl.schemas import harmonic_mean

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">&amp;'\"]]>"
"""A possible name of a class, a data set or a setting."""

NOTHING = Figures(mSA=None, mUA=None, mH=None)
_BIRDS = ("Horned Puffin", "Indigo Bunting", "Painted Bunting", "Hooded Merganser", "Cape Glossy Starling", "Ovenbird",
          "Gray Catbird", "Bobolink", "Green Kingfisher", "Western Grebe")  # fmt: skip


def window(number: int, rng: Random) -> WindowLine:
    seen = 70.0 + 14.0 / (1 + 0.08 * number) + rng.gauss(0, 0.8)
    unseen = 70.0 - 6.0 / number + rng.gauss(0, 1.4)
    again = seen - 1.2 + 0.06 * number
    return WindowLine(
        number=number,
        described=9,
        features=300 + rng.randrange(60),
        seen=7 * number - 1,
        unseen=2 * number + 1,
        digest=f"{rng.getrandbits(256):064x}",
        seen_accuracy=seen,
        unseen_accuracy=unseen,
        harmonic=harmonic_mean(seen, unseen),
        recalculated_seen=again,
        recalculated_unseen=unseen + 3,
        recalculated_harmonic=harmonic_mean(again, unseen + 3),
        prequential_seen=None if number == 1 else seen - 4,
        prequential_unseen=None if number == 1 else unseen + 5 + rng.gauss(0, 3),
        forgetting=0.0 if number == 1 else 0.12 * number + abs(rng.gauss(0, 0.2)),
        area=58.0 - 0.1 * number,
        losses={"rcl": 1.9 + 2.0 / number, "pcl": 0.8 / number, "nuclear": 0.2 + 0.01 * number},
        replay_kept=140 * number,
        replay_rejected=9 * number + rng.randrange(20),
        seconds_training=0.7 + 0.02 * number + rng.random() * 0.15,
    )


def mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def run(windows: int = 20, seed: int = 5) -> RunDocument:
    """A run as the default learner has it on a data set like CUB."""
    rng = Random(seed)
    lines = tuple(window(number, rng) for number in range(1, windows + 1))
    return RunDocument(
        title="CUB, online, 20 windows",
        dataset="CUB",
        extractor="EfficientNet-Lite2",
        setting="online",
        learner="episodic",
        seed=seed,
        command="stream-cgzsl run CUB --setting online --learner episodic --seed 5 --out runs/cub",
        bus="sqlite:///runs/cub/bus.db",
        settings={"learner": "episodic", "options": {"steps": 50, "rate": 0.02}, "threads": 1, "count": None},
        environment={"python": "3.11.2", "torch": "2.6.0", "threads": 1, "device": "cpu", "capability": "AVX2"},
        paper=(
            PaperRow(system="EWC", figures=Figures(mSA=38.64, mUA=None, mH=None)),
            PaperRow(system="Seq-CVAE", figures=Figures(mSA=24.66, mUA=8.57, mH=12.18)),
            PaperRow(system="DVGR-CZSL", figures=Figures(mSA=44.87, mUA=14.55, mH=21.66)),
            PaperRow(system="The paper’s own", figures=Figures(mSA=54.7, mUA=22.4, mH=31.7)),
            PaperRow(system="not measured", figures=NOTHING),
        ),
        as_of=Figures(
            mSA=mean([w.seen_accuracy for w in lines]),
            mUA=mean([w.unseen_accuracy for w in lines]),
            mH=mean([w.harmonic for w in lines]),
        ),
        recalculated=Figures(
            mSA=mean([w.recalculated_seen for w in lines]),
            mUA=mean([w.recalculated_unseen for w in lines]),
            mH=mean([w.recalculated_harmonic for w in lines]),
        ),
        forgetting=1.9,
        area=57.1,
        windows=lines,
        curve=tuple(CurvePoint(seen=80 * sin(i * 0.039), unseen=76 * cos(i * 0.039)) for i in range(41)),
        curve_point=CurvePoint(seen=80 * sin(0.85), unseen=76 * cos(0.85)),
        similarities=tuple(
            panel(name, learned, windows, rng) for name, learned in zip(_BIRDS, (8, None, 14, None), strict=False)
        ),
        map=feature_map(_BIRDS, 40, rng),
        seconds_training=sum(w.seconds_training for w in lines),
        seconds_total=48.3,
    )


def panel(class_id: str, learned_in: int | None, windows: int, rng: Random) -> SimilarityPanel:
    others = [name for name in _BIRDS if name != class_id]
    found = []
    for number in range(1, windows + 1):
        learned = learned_in is not None and number >= learned_in
        own = 0.42 + 0.008 * number + (0.12 if learned else 0.0) + rng.gauss(0, 0.01)
        first, second = others[number // 6 % len(others)], others[(number // 9 + 4) % len(others)]
        near = [
            Similar(class_id=class_id, similarity=own, seen=learned),
            Similar(class_id=first, similarity=0.38 + rng.gauss(0, 0.015), seen=number % 6 > 2),
            Similar(class_id=second, similarity=0.30 + rng.gauss(0, 0.015), seen=False),
        ]
        top = tuple(sorted(near, key=lambda one: one.similarity, reverse=True))
        found.append(Neighbours(window=number, top=top))
    return SimilarityPanel(class_id=class_id, learned_in=learned_in, windows=tuple(found))


def feature_map(class_ids: tuple[str, ...], rows: int, rng: Random) -> FeatureMap:
    points = []
    for index in range(len(class_ids)):
        x, y = rng.uniform(-9, 9), rng.uniform(-5, 5)
        for number in range(2 * rows):
            place = {"x": x + rng.gauss(0, 0.8), "y": y + rng.gauss(0, 0.6)}
            points.append(MapPoint(**place, class_index=index, replayed=number % 2 == 1))
    return FeatureMap(class_ids=class_ids, points=tuple(points))


BUCKETS = ("0", "1-2", "3-5", "6-20", ">20")


def trickle() -> RunDocument:
    """A run in the trickle setting; at first no class has had many examples."""
    whole = run()
    lines = tuple(
        line.model_copy(
            update={
                "overall": 50.0 + line.number / 2,
                "by_examples": {b: 40.0 + 6 * i for i, b in enumerate(BUCKETS) if i < line.number},
            }
        )
        for line in whole.windows
    )
    means = {bucket: 40.0 + 6 * i for i, bucket in enumerate(BUCKETS)}
    return whole.model_copy(
        update={"setting": "trickle", "overall": 55.3, "by_examples": means, "windows": lines, "paper": ()}
    )


# ---- odd runs


def one_window() -> RunDocument:
    return run(windows=1)


def bare() -> RunDocument:
    """Nothing is known but that one window was trained: no unseen classes, no figures, nothing optional."""
    only = WindowLine(
        number=1, described=3, features=9, seen=3, unseen=0, digest="0" * 64, seconds_training=0.0,
        **dict.fromkeys(
            (
                *("seen_accuracy", "unseen_accuracy", "harmonic", "recalculated_seen", "recalculated_unseen"),
                *("recalculated_harmonic", "prequential_seen", "prequential_unseen", "forgetting", "area"),
            )
        ),
    )  # fmt: skip
    return _stripped(run(), windows=(only,))


def no_windows() -> RunDocument:
    return _stripped(run(), windows=())


def seen_only() -> RunDocument:
    """A setting whose last windows have no unseen class."""
    whole = run(windows=4)
    gone = {"unseen": 0, "unseen_accuracy": None, "harmonic": None, "recalculated_unseen": None,
            "recalculated_harmonic": None, "prequential_unseen": None}  # fmt: skip
    lines = tuple(line.model_copy(update=gone) for line in whole.windows)
    figures = Figures(mSA=70.0, mUA=None, mH=None)
    return whole.model_copy(
        update={"windows": lines, "as_of": figures, "recalculated": figures, "curve": (), "curve_point": None}
    )


def crowded() -> RunDocument:
    """717 classes in the map, 60 windows, and names as long as names can be."""
    rng = Random(1)
    names = tuple(f"{number:03d} " + "a very long class name " * 10 for number in range(717))
    many = run(windows=60)
    panels = tuple(p.model_copy(update={"class_id": names[i]}) for i, p in enumerate(many.similarities))
    return many.model_copy(
        update={"map": feature_map(names, 1, rng), "similarities": panels, "title": "W" * 256, "command": "x" * 3000}
    )


def hostile() -> RunDocument:
    """Every text of the document is an attempt."""
    whole = run(windows=3)
    text = whole.model_dump_json()
    for word in (*_BIRDS, "CUB, online, 20 windows", "EfficientNet-Lite2", "online", "episodic", "AVX2", "rcl", "EWC"):
        text = text.replace(f'"{word}"', dumps(HOSTILE + word[:3]))
    return RunDocument.model_validate_json(text)


def _stripped(whole: RunDocument, windows: tuple[WindowLine, ...]) -> RunDocument:
    empty = {"paper": (), "as_of": NOTHING, "recalculated": NOTHING, "forgetting": None, "area": None, "curve": (),
             "curve_point": None, "similarities": (), "map": None, "settings": {}, "environment": {}}  # fmt: skip
    return whole.model_copy(update={**empty, "windows": windows})


# ---- studies


def ablation() -> StudyDocument:
    """Rows with deviations, the paper's figures for some."""
    names = ("all losses", "without L_GAN", "without L_rcl", "without L_snl", "without L_pcl", "without L_sal",
             "without L_nuclear")  # fmt: skip
    rows = []
    for number, name in enumerate(names):
        figures = Figures(mSA=70.4 - number, mUA=62.8 - 1.5 * number, mH=66.1 - 1.3 * number)
        rows.append(
            StudyRow(
                label=name,
                runs=3,
                as_of=figures,
                deviation=Figures(mSA=0.4, mUA=0.9, mH=0.5),
                recalculated=figures.model_copy(update={"mH": 70.0 - number}),
                forgetting=2.5,
                area=51.0,
                paper=figures.model_copy(update={"mSA": 55.0, "mUA": 40.0, "mH": 46.3}) if number % 2 == 0 else None,
                seconds=40.0 + number,
                settings={"learner": "adversarial", "options": {"without": name}},
                digest=f"{number:064x}",
            )
        )
    return StudyDocument(
        study="ablation",
        title="What each loss brings",
        question="Which of the six losses carries the system?",
        dataset="CUB",
        extractor="EfficientNet-Lite2",
        setting="online",
        command="stream-cgzsl study ablation CUB",
        environment={"python": "3.11.2", "torch": "2.6.0"},
        rows=tuple(rows),
    )


def sweep() -> StudyDocument:
    """One setting over powers of ten."""
    rows = tuple(
        StudyRow(
            label=f"replay {x}",
            runs=3,
            as_of=Figures(mSA=72 - 30 / (1 + i), mUA=60 + i, mH=66 - 12 / (1 + i)),
            deviation=Figures(mSA=1.0, mUA=1.4, mH=0.8),
            recalculated=Figures(mSA=70.0, mUA=64.0, mH=66.9),
            x=float(x),
            seconds=20.0 + x / 10,
        )
        for i, x in enumerate((1, 5, 20, 50, 150, 300, 600))
    )
    base = ablation()
    return base.model_copy(
        update={"study": "replay", "title": "How much replay", "x_label": "replayed features a class", "rows": rows}
    )


def few_shot() -> StudyDocument:
    """As many learners as there are."""
    names = ("evidence", "episodic", "closed-form", "ridge", "paper", "authors-code", "adversarial", "joint")
    curves = tuple(
        FewShotCurve(
            learner=name,
            shots=tuple(
                Shot(k=k, seen=80.0 - number, given=max(5.0, 70.0 + k / 2 - 8 * number), rest=60.0 + k / 4 + number)
                for k in (0, 1, 2, 3, 5, 10, 20)
            ),
            seconds=12.0,
        )
        for number, name in enumerate(names)
    )
    base = {"study": "few-shot", "title": "What the first examples do", "setting": "few-shot", "rows": ()}
    return ablation().model_copy(update={**base, "draws": 5, "curves": curves})


def trickle_study() -> StudyDocument:
    """Every learner in the trickle setting."""
    names = ("evidence", "episodic", "authors-code", "joint (upper bound, no stream)")
    rows = tuple(
        row.model_copy(
            update={
                "label": name,
                "overall": 60.0 - number,
                "by_examples": {bucket: 45.0 + 5 * i - number for i, bucket in enumerate(BUCKETS)},
            }
        )
        for number, (name, row) in enumerate(zip(names, ablation().rows, strict=False))
    )
    return ablation().model_copy(update={"study": "learners", "setting": "trickle", "rows": rows})


def empty_study() -> StudyDocument:
    return ablation().model_copy(update={"rows": ()})


def unmeasured_study() -> StudyDocument:
    """Rows that have nothing to show."""
    row = StudyRow(label="nothing", runs=1, as_of=NOTHING, recalculated=NOTHING, seconds=0.0)
    return ablation().model_copy(update={"rows": (row, row)})
