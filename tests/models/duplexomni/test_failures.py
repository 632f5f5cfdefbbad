"""Failing servers: the sample fails, the slice is named, the server's words are told."""

from __future__ import annotations

import threading
import time

import pytest

from hfd.duplex.model import ModelBroken, SampleInfo
from hfd.errors import HfdError
from hfd.models.registry import create_model
from tests.fakes.duplexomni import Talker, Thinker
from tests.models.duplexomni.conftest import drive, units


def test_an_error_names_the_slice_and_the_servers_words_and_nothing_is_sent_after_it(
    servers, model_of, tmp_path
):
    words = "prompt of 70011 tokens is longer than max_model_len"
    thinker = servers(Thinker, fail=lambda index, post: (500, words) if index == 3 else None)
    talker = servers(Talker)
    with pytest.raises(HfdError, match=f"slice 3: the thinker answered 500: {words}"):
        drive(model_of(thinker, talker), units(6), tmp_path)
    assert thinker.posts == 4
    assert [turn.index for turn in talker.heard] == [0, 1, 2]
    assert talker.forgotten == [talker.heard[0].session]


@pytest.mark.realtime
def test_with_the_arrival_clock_an_error_ends_the_slices_that_wait(servers, model_of, tmp_path):
    thinker = servers(
        Thinker, delay_s=lambda _: 0.1, fail=lambda index, _: (500, "no") if index == 1 else None
    )
    with pytest.raises(HfdError, match="slice 1: the thinker answered 500: no"):
        drive(model_of(thinker, clock="arrival"), units(4), tmp_path)
    assert thinker.posts == 2


@pytest.mark.realtime
def test_a_slice_that_still_waits_for_the_talker_does_not_hide_why_the_sample_failed(
    servers, model_of, tmp_path
):
    thinker = servers(Thinker, die_at=2)
    talker = servers(Talker, delay_s=lambda index: 0.5)  # slice 1 waits while slice 2 fails
    with pytest.raises(HfdError, match="slice 2: the thinker is gone"):
        drive(model_of(thinker, talker, clock="arrival"), units(5), tmp_path)


def test_before_the_first_answer_there_is_one_retry(servers, model_of, tmp_path):
    thinker = servers(Thinker, fail=lambda _, post: (503, "loading") if post == 1 else None)
    drive(model_of(thinker), units(3), tmp_path)
    assert thinker.posts == 4


def test_there_is_no_second_retry(servers, model_of, tmp_path):
    thinker = servers(Thinker, fail=lambda index, post: (503, "loading"))
    with pytest.raises(HfdError, match="slice 0: the thinker answered 503: loading"):
        drive(model_of(thinker), units(3), tmp_path)
    assert thinker.posts == 2


def test_a_refusal_is_never_retried(servers, model_of, tmp_path):
    thinker = servers(Thinker, fail=lambda index, post: (400, "bad"))
    with pytest.raises(HfdError, match="slice 0: the thinker answered 400: bad"):
        drive(model_of(thinker), units(3), tmp_path)
    assert thinker.posts == 1


@pytest.mark.parametrize("clock", ["virtual", pytest.param("arrival", marks=pytest.mark.realtime)])
@pytest.mark.parametrize("who", [Thinker, Talker])
def test_the_death_of_a_server_fails_the_sample_at_its_slice(
    servers, model_of, tmp_path, who, clock
):
    dying = servers(who, die_at=2)
    pair = {"thinker": dying} if who is Thinker else {"talker": dying}
    with pytest.raises(HfdError, match=f"slice 2: the {who.__name__.lower()} is gone"):
        drive(model_of(**pair, clock=clock), units(5), tmp_path)


def test_the_answer_for_another_session_fails_the_sample(servers, model_of, tmp_path):
    thinker = servers(Thinker, session=lambda session: "someone-else")
    talker = servers(Talker)
    with pytest.raises(HfdError, match="slice 0: the thinker answered for session 'someone-else'"):
        drive(model_of(thinker, talker), units(3), tmp_path)
    assert not talker.heard


@pytest.mark.parametrize("samples", [11520, 10964, 10966, 0])
def test_a_slice_of_another_length_is_refused_not_stretched(servers, model_of, tmp_path, samples):
    talker = servers(Talker, samples=samples)
    with pytest.raises(HfdError, match=f"slice 0: the talker's slice has {samples} samples"):
        drive(model_of(talker=talker), units(3), tmp_path)


@pytest.mark.realtime
def test_a_talker_that_hangs_fails_the_sample_in_time(servers, model_of, tmp_path):
    talker = servers(Talker, delay_s=lambda index: 3.0 if index == 1 else 0.0)
    began = time.monotonic()
    with pytest.raises(HfdError, match=r"slice 1: the talker did not answer within 0.3 s"):
        drive(model_of(talker=talker, request_timeout_s=0.3), units(3), tmp_path)
    assert time.monotonic() - began < 2


@pytest.mark.realtime
def test_closing_a_sample_does_not_wait_for_a_server_that_hangs(servers, model_of, tmp_path):
    talker = servers(Talker, delay_s=lambda _: 5.0)
    model = model_of(talker=talker, clock="arrival")
    model.open(SampleInfo("s", 1.44, 64, 48, 5, tmp_path), lambda event: None)
    for unit in units(2):
        model.push(unit)
    time.sleep(0.2)
    began = time.monotonic()
    model.close()
    assert time.monotonic() - began < 2


def test_after_a_failed_sample_the_next_one_starts_clean(servers, model_of, tmp_path):
    thinker = servers(Thinker, fail=lambda index, post: (500, "once") if post == 3 else None)
    talker = servers(Talker)
    model = model_of(thinker, talker)
    with pytest.raises(HfdError, match="once"):
        drive(model, units(4), tmp_path)
    thinker.requests.clear()
    again = drive(model, units(4), tmp_path)
    assert len(thinker.requests[0].messages) == 2
    assert len({turn.session for turn in talker.heard}) == 2
    assert [type(e).__name__ for e in again] == [
        type(e).__name__ for e in drive(model_of(), units(4), tmp_path)
    ]


@pytest.mark.realtime
@pytest.mark.parametrize(("delay_s", "limit_s", "slow"), [(0.2, 5.0, False), (0.7, 0.4, True)])
def test_a_thinker_slower_than_real_time_is_not_online_though_every_slice_was_queued_in_time(
    servers, model_of, tmp_path, delay_s, limit_s, slow
):
    thinker = servers(Thinker, delay_s=lambda index: delay_s)
    model = model_of(thinker, clock="arrival", max_lag_s=limit_s)
    if slow:
        with pytest.raises(HfdError, match=r"not_online: slice [12] left 0\.\d+ s after"):
            drive(model, units(6), tmp_path)
        assert thinker.posts <= 3
    else:
        events = drive(model, units(6), tmp_path)
        lags = [e.values["lag_ms"] for e in events if getattr(e, "name", "") == "slice"]
        assert len(lags) == 6 and all(0 <= lag < 5000 for lag in lags)


@pytest.mark.realtime
def test_a_talker_that_is_never_done_ends_the_sample_in_time(servers, model_of, tmp_path):
    talker = servers(Talker, delay_s=lambda index: 60.0 if index == 1 else 0.0)
    began = time.monotonic()
    with pytest.raises(HfdError, match="never_ended"):
        drive(model_of(talker=talker, clock="arrival", drain_max_s=0.5), units(3), tmp_path)
    assert time.monotonic() - began < 30


def test_an_engine_dead_behind_a_healthy_server_ends_the_worker_at_the_next_sample(
    servers, model_of, tmp_path
):
    """Every turn is answered with 500, /health stays fine; the servers are not ours."""
    thinker = servers(Thinker)
    model = model_of(thinker)
    drive(model, units(2), tmp_path)
    thinker.dead = True
    with pytest.raises(HfdError, match="slice 0: the thinker answered 500"):
        drive(model, units(2), tmp_path)
    with pytest.raises(ModelBroken, match=r"up but take no turn.*answered 500: Internal Server"):
        drive(model, units(2), tmp_path)


def test_an_engine_dead_from_the_start_is_noticed_before_the_first_sample(servers, model_of):
    thinker = servers(Thinker)
    thinker.dead = True
    with pytest.raises(HfdError, match="no warm-up turn: the thinker answered 500"):
        model_of(thinker)


def test_servers_that_fail_three_samples_in_a_row_end_the_worker_though_they_take_a_turn(
    servers, model_of, tmp_path
):
    thinker = servers(Thinker, fail=lambda index, post: (500, "boom") if index == 1 else None)
    model = model_of(thinker)
    for _ in range(3):
        with pytest.raises(HfdError, match="slice 1: the thinker answered 500: boom"):
            drive(model, units(3), tmp_path)
    assert thinker.warm_ups == 1 + 2
    with pytest.raises(ModelBroken, match=r"last 3 samples all ended by a fault.*boom"):
        drive(model, units(3), tmp_path)


def test_a_sample_that_goes_well_forgives_the_faults_before_it(servers, model_of, tmp_path):
    thinker = servers(Thinker)
    model = model_of(thinker)
    for _ in range(4):
        thinker.fail = lambda index, post: (500, "boom") if index == 1 else None
        with pytest.raises(HfdError, match="boom"):
            drive(model, units(2), tmp_path)
        thinker.fail = lambda index, post: None
        drive(model, units(2), tmp_path)


def test_a_stack_that_is_gone_ends_the_worker_instead_of_failing_every_sample(
    servers, model_of, tmp_path
):
    talker = servers(Talker)
    model = model_of(talker=talker)
    talker.die()
    with pytest.raises(ModelBroken, match="the talker is gone"):
        drive(model, units(2), tmp_path)


def test_workers_that_share_a_stack_take_turns(servers, model_of, tmp_path):
    thinker, talker = servers(Thinker), servers(Talker)
    one, other = model_of(thinker, talker), model_of(thinker, talker)
    info = SampleInfo("s", 0.96, 64, 48, 5, tmp_path)
    opened = threading.Event()

    def second():
        other.open(info, lambda event: None)
        opened.set()

    one.open(info, lambda event: None)
    waiting = threading.Thread(target=second)
    waiting.start()
    assert not opened.wait(0.3), "two sessions at once"
    one.close()
    assert opened.wait(5)
    waiting.join()
    other.close()


@pytest.mark.parametrize(
    "url", ["http://10.0.0.5:19999", "http://example.org", "https://127.0.0.1:1", "ftp://localhost"]
)
def test_a_server_beyond_loopback_is_refused_before_anything_is_sent(url):
    stack = {"thinker_url": url, "talker_url": "http://127.0.0.1:1"}
    with pytest.raises(HfdError, match="loopback"):
        create_model("duplexomni", {"stack": stack}).load()


def test_the_orchestrators_address_in_the_thinkers_place_is_noticed(servers):
    talker = servers(Talker)  # its /health names no model, as the orchestrator's
    stack = {"thinker_url": talker.url, "talker_url": talker.url}
    with pytest.raises(HfdError, match="not the orchestrator"):
        create_model("duplexomni", {"stack": stack}).load()


URLS = {"thinker_url": "http://127.0.0.1:1", "talker_url": "http://127.0.0.1:2"}


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({}, "settings.stack"),
        ({"stack": URLS, "pictures": 1}, "settings.pictures: is no setting"),
        ({"stack": {**URLS, "tp": 1}}, "settings.stack.tp: is no setting"),
        ({"stack": {"thinker_url": "http://127.0.0.1:1"}}, "settings.stack.talker_url: is missing"),
        ({"stack": URLS, "clock": "wall"}, "settings.clock"),
        ({"stack": URLS, "picture_interval": 0}, "settings.picture_interval"),
        ({"stack": URLS, "picture_interval": 2.5}, "settings.picture_interval"),
        ({"stack": URLS, "jpeg_quality": True}, "settings.jpeg_quality"),
        ({"stack": URLS, "temperature": "hot"}, "settings.temperature"),
        ({"stack": {"python": "python3"}}, "settings.stack.server_root: is missing"),
    ],
)
def test_wrong_settings_are_named_before_anything_is_loaded(settings, field):
    with pytest.raises(HfdError, match=field):
        create_model("duplexomni", settings)


def test_a_stack_may_be_named_by_the_environment_of_the_machine(servers, monkeypatch):
    thinker, talker = servers(Thinker), servers(Talker)
    monkeypatch.setenv("OMNI_THINKER", thinker.url)
    stack = {"thinker_url": "$OMNI_THINKER", "talker_url": talker.url}
    assert create_model("duplexomni", {"stack": stack}).load().max_context_tokens == 65536
    monkeypatch.delenv("OMNI_THINKER")
    with pytest.raises(HfdError, match=r"settings.stack.thinker_url.*environment variable"):
        create_model("duplexomni", {"stack": stack}).load()
