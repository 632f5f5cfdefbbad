"""Nothing secret is kept, in whatever place of the settings it stands."""

from __future__ import annotations

import json

import pytest

from hfd.jobs.spec import Recipe
from hfd.secrets import HIDDEN, scrub, without_secrets

KEY = "sk-4f9aZZtop"


@pytest.mark.parametrize(
    "settings",
    [
        {"url": f"wss://host/v1/live?model=x&token={KEY}"},
        {"url": f"wss://host/v1?key={KEY}&alt=sse"},
        {"url": f"https://user:{KEY}@host/v1"},
        {"servers": {"tts": {"command": ["serve"], "env": {"HF_TOKEN": KEY, "PLAIN": KEY}}}},
        {"servers": {"a": {"command": ["serve", "--url", f"ws://h/?sig={KEY}"]}}},
        {"api_key": KEY},
        {"apiKey": KEY},
        {"s2": {"authorization": f"Bearer {KEY}"}},
        {"headers": {"X-Anything": KEY}},
        {"list": [{"password": KEY}]},
    ],
)
def test_a_secret_is_neither_kept_nor_part_of_a_fingerprint(settings):
    kept = json.dumps(without_secrets(settings))
    assert KEY not in kept
    exchanged = json.loads(json.dumps(settings).replace(KEY, "another-key"))
    if "PLAIN" not in kept and "X-Anything" not in kept:  # those are known by a hash
        assert without_secrets(exchanged) == without_secrets(settings)
        one, other = (Recipe("m", values, 0, {}) for values in (settings, exchanged))
        assert one.fingerprint("v", None) == other.fingerprint("v", None)


def test_what_is_no_secret_stays_as_it_is():
    settings = {
        "url": "ws://127.0.0.1:{port}/v1/aero/realtime",
        "model_path": "/data/ROMA",
        "max_tokens": 999,
        "api_key_env": "OPENAI_API_KEY",
        "weights": "kcz358/aero-realtime-4B@0123",
        "thresholds": [0.5, None, True],
    }
    assert without_secrets(settings) == settings


def test_a_variable_of_a_servers_environment_is_known_by_a_hash_so_that_a_change_shows():
    one, other = (without_secrets({"env": {"MODE": mode}})["env"]["MODE"] for mode in "ab")
    assert one != other and one.startswith("sha256:")


def test_a_text_for_a_log_loses_urls_secrets_bearers_and_known_values():
    text = f"cannot connect to wss://a:{KEY}@h/p?token={KEY}&model=m: Bearer {KEY}{KEY}, got {KEY}"
    said = scrub(text, [KEY])
    assert KEY not in said
    assert "model=m" in said and said.count(HIDDEN) >= 3


def test_no_file_of_a_run_holds_a_secret_of_its_settings(desk):
    desk.add_samples(["a", "b"])
    desk.add_model("loud", note=f"wss://host/?token={KEY}", env={"HF_TOKEN": KEY, "OTHER": KEY})
    desk.faults("loud", error=["b"])
    output = desk.run("results_loud", ok=False)
    assert "wss://host/?token=" in output  # the model's own error repeats its settings
    (desk.path / "config" / "models.yaml").unlink()
    holders = [
        path.relative_to(desk.path)
        for path in desk.path.rglob("*")
        if path.is_file() and KEY.encode() in path.read_bytes()
    ]
    assert holders == []
    assert KEY not in output
