"""The core of every socket client against servers that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from contextlib import asynccontextmanager
from http import HTTPStatus

import numpy as np
import pytest
from websockets.asyncio.server import serve

from hfd.duplex.units import Unit
from hfd.models.sockets.exchange import Exchange
from hfd.models.sockets.failures import FAILURES, SampleFailure
from hfd.models.sockets.link import Link
from hfd.models.sockets.recording import RAW_FRAMES, Recording, Secrets
from hfd.models.sockets.sender import UnitSender

KEY = "sk-marker-123456"


def unit(index: int, samples: int = 1600) -> Unit:
    return Unit(index, index * samples, np.zeros(samples, np.float32), (), samples, False)


@asynccontextmanager
async def connected(handle, *, secrets=None, recording=None, headers=None, **serving):
    """A link to a server that runs `handle`, and the sample it belongs to."""
    exchange = Exchange(recording or Recording(None), secrets)
    link = Link("peer", exchange, max_message_bytes=1 << 20)
    async with serve(handle, "127.0.0.1", 0, close_timeout=0.2, **serving) as server:
        port = server.sockets[0].getsockname()[1]
        try:
            async with link.setup(2):
                await link.connect(f"ws://127.0.0.1:{port}/", headers)
            yield link, exchange
        finally:
            await link.close()
            await exchange.close()
            if isinstance(handle, Deaf):
                handle.gone.set()
            server.close(close_connections=True)


def outcome(handle, work, **options):
    """Run a client's coroutine against a server's; the failure's name, or what it returned."""

    async def both():
        async with connected(handle, **options) as (link, exchange):
            return await exchange.unless_failed(work(link, exchange))

    try:
        return asyncio.run(both())
    except SampleFailure as failure:
        assert failure.kind in FAILURES
        return failure.end_reason


async def read_all(link, exchange):
    return [raw async for raw, _ in link.messages()]


class Deaf:
    """A server that reads nothing any more, until the client has gone."""

    def __init__(self):
        self.gone = asyncio.Event()

    async def __call__(self, socket):
        socket.transport.pause_reading()
        await self.gone.wait()


async def quiet(socket):
    await socket.wait_closed()


def sender(link, exchange, *, size=10, media_s=1.0, drain_max_s=5.0, max_lag_s=0.5):
    async def encode(unit):
        return ["x" * size]

    return UnitSender(
        link, exchange, encode, list, media_s=media_s, max_lag_s=max_lag_s, drain_max_s=drain_max_s
    )


def test_a_server_that_does_not_read_makes_the_sample_not_online():
    async def work(link, exchange):
        units = sender(link, exchange, size=1 << 20)
        exchange.spawn(units.run())
        for index in range(20):
            units.push(unit(index))
            await asyncio.sleep(0.1)
        return units.sent

    assert outcome(Deaf(), work) == "not_online"


def test_a_link_is_closed_although_the_server_does_not_answer(monkeypatch):
    monkeypatch.setattr("hfd.models.sockets.link.CLOSE_S", 0.3)

    async def work(link, exchange):
        began = time.monotonic()
        await link.close()
        return time.monotonic() - began

    assert outcome(Deaf(), work) < 10  # it never would by itself


def test_messages_without_meaning_do_not_prolong_a_sample_beyond_its_cap():
    async def chatter(socket):
        with contextlib.suppress(Exception):
            while True:
                await socket.send(json.dumps({"type": "ping"}))
                await asyncio.sleep(0.01)

    async def work(link, exchange):
        units = sender(link, exchange, media_s=0.1, drain_max_s=0.4)
        exchange.spawn(units.run())
        units.push(unit(0))
        units.end()
        await read_all(link, exchange)

    assert outcome(chatter, work) == "never_ended"


def test_a_unit_has_been_sent_when_it_has_left():
    async def work(link, exchange):
        units = sender(link, exchange, size=16 << 20, max_lag_s=60, drain_max_s=60)
        exchange.spawn(units.run())
        units.push(unit(0))
        await asyncio.sleep(0.2)
        return units.begun, units.sent

    assert outcome(Deaf(), work) == (1, 0)


def test_units_leave_in_order_and_the_ending_after_them():
    seen = []

    async def listen(socket):
        seen.extend([raw async for raw in socket])

    async def work(link, exchange):
        async def encode(unit):
            return [f"a{unit.index}", f"b{unit.index}"]

        units = UnitSender(
            link, exchange, encode, lambda: ["end"], media_s=1, max_lag_s=30, drain_max_s=30
        )
        running = exchange.spawn(units.run())
        units.push(unit(0))
        units.push(unit(1))
        units.end()
        await running
        return units.sent, units.facts()["wire_lag_ms"]["max"] >= 0

    assert outcome(listen, work) == (2, True)
    assert seen == ["a0", "b0", "a1", "b1", "end"]


@pytest.mark.parametrize(
    ("code", "expected"), [(1000, []), (1001, []), (1008, None), (1011, None), (4000, None)]
)
def test_only_an_orderly_close_ends_the_messages_without_a_failure(code, expected):
    async def close(socket):
        await socket.close(code, "reason of the server")

    found = outcome(close, read_all)
    assert found == (expected if expected is not None else "peer_socket_lost")


def test_a_connection_that_breaks_is_lost():
    async def drop(socket):
        socket.transport.abort()

    assert outcome(drop, read_all) == "peer_socket_lost"


def test_a_message_above_the_limit_has_a_name_of_its_own():
    async def shout(socket):
        await socket.send("x" * ((1 << 20) + 1))
        await socket.wait_closed()

    assert outcome(shout, read_all) == "peer_too_big"


def test_fragments_count_together_against_the_limit():
    async def shout(socket):
        with contextlib.suppress(Exception):
            await socket.send("x" * (1 << 18) for _ in range(5))

    assert outcome(shout, read_all) == "peer_too_big"


@pytest.mark.parametrize("raw", ["{", "[1", "null", '"text"', "[" * 100_000])
def test_what_cannot_be_read_is_a_breach_of_protocol(raw):
    async def babble(socket):
        await socket.send(raw)
        await socket.wait_closed()

    async def work(link, exchange):
        async def read():
            async for message, _ in link.messages():
                json.loads(message)["type"]

        exchange.spawn(read(), "peer")
        await asyncio.sleep(5)

    assert outcome(babble, work) == "peer_protocol"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (HTTPStatus.UNAUTHORIZED, "peer_refused"),
        (HTTPStatus.NOT_FOUND, "peer_refused"),
        (HTTPStatus.TOO_MANY_REQUESTS, "peer_busy"),
        (HTTPStatus.SERVICE_UNAVAILABLE, "peer_busy"),
    ],
)
def test_a_refused_connection_is_the_servers_fault_and_shows_no_key(status, reason):
    def refuse(connection, request):
        return connection.respond(status, f"wrong key {request.headers['Authorization']}")

    async def run():
        headers = {"Authorization": f"Bearer {KEY}"}
        async with connected(
            quiet, process_request=refuse, secrets=Secrets([KEY]), headers=headers
        ):
            pass

    with pytest.raises(SampleFailure) as caught:
        asyncio.run(run())
    assert caught.value.end_reason == reason and caught.value.server_at_fault
    assert str(status.value) in str(caught.value)
    assert KEY not in str(caught.value)


def test_a_redirect_is_refused_so_that_no_key_follows_it():
    def redirect(connection, request):
        response = connection.respond(HTTPStatus.FOUND, "")
        response.headers["Location"] = "ws://127.0.0.1:1/"
        return response

    assert outcome(quiet, read_all, process_request=redirect) == "peer_refused"


def test_a_server_that_never_answers_the_handshake_is_given_up():
    async def run():
        server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
        link = Link("peer", Exchange(Recording(None)))
        async with server, link.setup(0.3):
            await link.connect(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/")

    with pytest.raises(SampleFailure, match=r"^peer_connect_failed: no session within"):
        asyncio.run(run())


def test_the_first_failure_stays():
    async def run():
        exchange = Exchange(Recording(None))
        exchange.fail(SampleFailure("error", "first"))
        exchange.fail(SampleFailure("stalled", "second"))
        await exchange.unless_failed(asyncio.sleep(5))

    with pytest.raises(SampleFailure, match="first"):
        asyncio.run(run())


def test_secrets_are_in_no_recorded_message(tmp_path):
    secrets = Secrets([KEY])
    recording = Recording(tmp_path, secrets)
    recording.add("peer", "out", json.dumps({"key": KEY, "text": "你好"}, ensure_ascii=False))
    recording.add("peer", "in", json.dumps({"session": {"resume_token": 'a"b', "id": "s1"}}))
    recording.add("peer", "in", b'{"sessionResumptionUpdate": {"newHandle": "h-1"}}')
    recording.add("peer", "in", b"\x00\x01" + KEY.encode())
    recording.close()
    text = (tmp_path / RAW_FRAMES).read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["dir"] for line in lines] == ["out", "in", "in", "in"]
    assert KEY not in text and 'a\\"b' not in text and "h-1" not in text
    assert "你好" in text and "s1" in text
    assert json.loads(lines[1]["text"])["session"]["id"] == "s1"
