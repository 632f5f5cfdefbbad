"""A model whose samples ran side by side: judged like any other, but for its times."""

import shutil

from hfd.judge.comparisons import paired_rows
from hfd.judge.measurement_card import LATENCIES, card_markdown, measurement_card
from hfd.judge.run import Audit
from hfd.judge.sample import audit_sample
from hfd.judge.sensitivity_table import sensitivity_rows
from hfd.judge.shared_times import TIMED
from hfd.judge.tables import metric_rows, sample_rows
from tests.judge.cheats.identity import share_times
from tests.judge.forge import Forgery
from tests.judge.test_cheats import POLICY, failures, reference_of, verdicts_of


def records_of(results, world, model):
    return [
        audit_sample(results / s.sample_id, model, s.task, reference_of(s), POLICY)
        for s in world.samples
    ]


def test_shared_times_are_shown_nowhere_and_compared_with_nobody(world, honest, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(honest, results)
    for folder in sorted(results.iterdir()):
        share_times(Forgery(folder))
    verdicts = verdicts_of(results, world)
    assert failures(verdicts) == set()
    assert verdicts["A17"].status == "not_evidenced"  # cost is a time, too
    own, shared = records_of(honest, world, "own"), records_of(results, world, "shared")
    for one, other in zip(own, shared, strict=True):
        assert {key for key in TIMED if other.metrics.get(key) is not None} == set()
        kept = set(one.metrics) - TIMED - {k for k in one.metrics if k.startswith("onset_")}
        assert {k: one.metrics[k] for k in kept} == {k: other.metrics[k] for k in kept}
    assert paired_rows({"own": own, "also": own}) != []
    assert paired_rows({"own": own, "shared": shared}) == []
    audit = Audit(["own", "shared"], {"own": own, "shared": shared}, {}, world.samples)
    timed = {row["model"] for row in metric_rows(audit) if row["metric"] in TIMED}
    assert timed == {"own"}
    assert {row["model"]: row["sessions"] for row in metric_rows(audit)} == {"own": 1, "shared": 4}
    assert {row["model"]: row["sessions"] for row in sample_rows(audit)} == {"own": 1, "shared": 4}
    moved = sensitivity_rows({"shared": shared})
    assert moved and not {row["metric"] for row in moved} & TIMED
    card = measurement_card(shared, verdicts)
    assert [card["latencies_s"][latency.key] for latency in LATENCIES] == [None] * len(LATENCIES)
    assert card["sessions"] == 4 and card["real_time_factor"] is None
    assert "| Sessions at a time | 4: times are shared, and left out here |" in card_markdown(
        "shared", card
    )
