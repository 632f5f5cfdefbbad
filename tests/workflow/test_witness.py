"""The witness in a real run: every attempt is in its log before its result can be seen."""

import json

import verify_results
import witness_key


def entries(folder):
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [(line["kind"], line.get("sample_id")) for line in map(json.loads, lines)]


def test_attempts_errors_and_results_are_logged_and_the_results_verified(desk, capsys):
    desk.add_samples(["a", "样本 b"])
    desk.add_model("beeper")
    folder = desk.path / "my witness"
    asked = ("results_beeper", "--config", f"witness={folder}")
    said = desk.run(*asked, ok=False)
    assert f"python scripts/witness_key.py {folder}" in said and "Traceback" not in said
    witness_key.main([str(folder)])
    desk.faults("beeper", error=["a"])
    desk.run(*asked, ok=False)
    desk.faults("beeper")
    desk.run(*asked)
    kept = entries(folder)
    assert kept[0] == ("log", None) and kept.count(("begin", "样本 b")) == 1
    of_a = [kind for kind, sample in kept if sample == "a"]
    assert of_a[-1] == "done" and of_a.count("done") == 1 and "error" in of_a
    assert of_a[::2] == ["begin"] * of_a.count("begin")
    args = [
        str(desk.path / "results/beeper"),
        "--jobs",
        "1",
        "--witness",
        str(folder / "log.jsonl"),
    ]
    capsys.readouterr()
    verify_results.main(args)
    told = capsys.readouterr().out
    assert "witness: a: " in told and "error (line" in told
    assert "error: log.jsonl" not in told
