"""OpenAI's and Google's own types and clients, against our messages and our reference services.

The types judge what we send; the clients judge the reference services that the client is tested on.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import ipaddress
import json
import ssl
import sys

import numpy as np
import pytest

from hfd.models.realtime.dialects import make_dialect
from hfd.models.realtime.settings import read_settings
from tests.models.realtime.conftest import HERE, KEY, run_model, settings_for
from tests.models.realtime.peers.conftest import peer
from tests.models.realtime.service import tone
from tests.stream.conftest import compiled  # noqa: F401  a fixture

pytest.importorskip("openai", reason="needs requirements/realtime_peers.txt")
pytest.importorskip("google.genai", reason="needs requirements/realtime_peers.txt")

from google import genai
from google.genai import types as google_types
from openai import AsyncOpenAI
from openai.types import live as openai_live
from openai.types.realtime import RealtimeClientEvent, RealtimeServerEvent
from pydantic import TypeAdapter, ValidationError

pytestmark = pytest.mark.heavy

JPEG = b"\xff\xd8\xff\xe0" + bytes(20)
OPENAI, LIVE = TypeAdapter(RealtimeClientEvent), TypeAdapter(openai_live.ClientEvent)


def dialect(name, **settings):
    return make_dialect(
        read_settings({"dialect": name, "url": "wss://x/?autostart=0", "model": "m", **settings}), 7
    )


def messages(made, frames=()):
    """Everything that a dialect can send."""
    yield from made.opening()
    yield from made.unit(bytes(3200), frames)
    yield from made.ending()
    yield from made.heard("item_1", 120)
    yield from made.goodbye()


@pytest.mark.parametrize("modality", ["audio", "text"])
def test_openai_takes_every_message(modality):
    made = dialect("openai", modality=modality, voice="marin", instructions="Be brief.")
    sent = [json.loads(message) for message in messages(made, [JPEG])]
    assert {m["type"] for m in sent} == {
        "session.update",
        "conversation.item.create",
        "input_audio_buffer.append",
        "conversation.item.truncate",
    }
    for message in sent:
        assert type(OPENAI.validate_python(message)).model_fields["type"]


def test_openai_refuses_sixteen_kilohertz_so_the_check_is_one():
    (opening,) = dialect("openai", input_rate=16_000).opening()
    with pytest.raises(ValidationError):
        OPENAI.validate_python(json.loads(opening))


def test_openai_live_takes_every_message():
    made = dialect("openai_live", model="gpt-live-1", voice="marin", instructions="Be brief.")
    sent = [json.loads(message) for message in messages(made)]
    assert [m["type"] for m in sent] == [
        "session.start",
        "session.input_audio.append",
        "session.close",
    ]
    for message in sent:
        LIVE.validate_python(message)
    sent[0]["session"]["audio"]["format"]["rate"] = 8000
    with pytest.raises(ValidationError):
        LIVE.validate_python(sent[0])


def test_gemini_takes_every_message_and_knows_every_field():
    turns = {"automaticActivityDetection": {"silenceDurationMs": 500}}
    made = dialect("gemini", voice="Puck", frame_fps=1, instructions="!", turn_detection=turns)
    for message in map(json.loads, messages(made, [JPEG])):
        if "setup" in message:  # their client adds this key beside its own type
            asked = message["setup"].pop("realtimeInputConfig")
            google_types.RealtimeInputConfig.model_validate(asked)
        google_types.LiveClientMessage.model_validate(message)
    with pytest.raises(ValidationError):
        google_types.LiveClientMessage.model_validate({"realtimeInput": {"sound": {}}})


def test_what_the_reference_services_say_is_of_the_vendors_types(
    service,
    compiled,  # noqa: F811
    tmp_path,
):
    judges = {
        "openai": TypeAdapter(RealtimeServerEvent),
        "openai_live": TypeAdapter(openai_live.ServerEvent),
        "gemini": TypeAdapter(google_types.LiveServerMessage),
    }
    for name, judge in judges.items():
        out = tmp_path / name
        out.mkdir()
        settings = settings_for(name, service, record=True, idle_s=0.2)
        run_model(settings, compiled("6.mp4", 6), out, 1.2)
        lines = (out / "side" / "raw_frames.jsonl").read_text(encoding="utf-8").splitlines()
        frames = [json.loads(line) for line in lines]
        said = [json.loads(frame["text"]) for frame in frames if frame["dir"] == "in"]
        assert len(said) > 5
        for event in said:
            judge.validate_python(event)


def test_openais_own_client_talks_to_the_reference_service(service):
    async def talk():
        client = AsyncOpenAI(api_key=KEY, websocket_base_url=f"ws://127.0.0.1:{service}/v1")
        heard, words = b"", ""
        async with client.realtime.connect(model="gpt-test") as connection:
            (opening,) = dialect("openai").opening()
            await connection.session.update(session=json.loads(opening)["session"])
            sound = base64.b64encode(bytes(4800)).decode()
            for _ in range(6):
                await connection.input_audio_buffer.append(audio=sound)
            async for event in connection:
                if event.type == "response.output_audio.delta":
                    heard += base64.b64decode(event.delta)
                if event.type == "response.output_audio_transcript.delta":
                    words += event.delta
                if event.type == "response.done":
                    assert event.response.status == "completed"
                    return heard, words

    heard, words = asyncio.run(asyncio.wait_for(talk(), 20))
    assert words == "Hello 你好 there"
    np.testing.assert_array_equal(np.frombuffer(heard, "<i2"), tone(1.0))


def test_openais_own_live_client_talks_to_the_reference_service(service):
    async def talk():
        client = AsyncOpenAI(api_key=KEY, websocket_base_url=f"ws://127.0.0.1:{service}/v1")
        heard = b""
        async with client.live.connect() as connection:
            (opening,) = dialect("openai_live", model="gpt-live-1").opening()
            await connection.send(json.loads(opening))
            for _ in range(20):
                audio = base64.b64encode(bytes(4800)).decode()
                await connection.send({"type": "session.input_audio.append", "audio": audio})
            await connection.send({"type": "session.close"})
            async for event in connection:
                if event.type == "session.output_audio.delta":
                    heard += base64.b64decode(event.delta)
                if event.type == "session.closed":
                    return heard, event.usage.seconds

    heard, seconds = asyncio.run(asyncio.wait_for(talk(), 20))
    assert len(heard) == 2 * 2 * 24_000 and seconds == 2.0


@pytest.fixture
def certificate(tmp_path):
    """A certificate for 127.0.0.1 that nobody but this test trusts; files of it and of its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "reference services")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "cert.pem").write_bytes(made.public_bytes(pem))
    (tmp_path / "key.pem").write_bytes(key.private_bytes(pem, *plain))
    return tmp_path / "cert.pem", tmp_path / "key.pem"


@pytest.fixture
def service_tls(certificate, tmp_path):
    """The port of the reference services behind TLS."""
    command = [sys.executable, str(HERE / "service.py"), "{port}", *map(str, certificate)]
    with peer("tls", command, "tcp://127.0.0.1:{port}", tmp_path) as port:
        yield port


def test_googles_own_client_talks_to_the_reference_service(service_tls, certificate):
    trust = ssl.create_default_context(cafile=certificate[0])

    async def talk():
        client = genai.Client(
            api_key=KEY,
            http_options={
                "base_url": f"https://127.0.0.1:{service_tls}",
                "async_client_args": {"ssl": trust},
            },
        )
        heard, words = b"", ""
        config = {"response_modalities": ["AUDIO"], "output_audio_transcription": {}}
        async with client.aio.live.connect(model="gemini-test", config=config) as session:
            for _ in range(6):
                blob = google_types.Blob(data=bytes(3200), mime_type="audio/pcm;rate=16000")
                await session.send_realtime_input(audio=blob)
            async for message in session.receive():
                heard += message.data or b""
                content = message.server_content
                if content and content.output_transcription:
                    words += content.output_transcription.text
        return heard, words

    heard, words = asyncio.run(asyncio.wait_for(talk(), 20))
    assert words == "Hello 你好 there"
    np.testing.assert_array_equal(np.frombuffer(heard, "<i2"), tone(1.0))


@pytest.mark.realtime
def test_our_client_reaches_the_same_service_over_tls(
    service_tls,
    certificate,
    compiled,  # noqa: F811
    tmp_path,
    monkeypatch,
):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    settings = settings_for("gemini", service_tls, idle_s=0.2)
    settings["url"] = settings["url"].replace("ws://", "wss://")
    out = tmp_path / "out"
    out.mkdir()
    run = run_model(settings, compiled("6.mp4", 6), out, 1.2)
    assert run.result["text"] == "Hello 你好 there"
