"""Run the authors' own client, unchanged, against servers on other ports than it was written for.

python run_simulator.py simulate_video_v8.py http://127.0.0.1:PORT MODEL VIDEO OUT.wav
"""

import asyncio
import importlib.util
import sys


def main(script: str, url: str, model: str, video: str, out: str) -> None:
    """Load the client, name the servers and the files, run it."""
    spec = importlib.util.spec_from_file_location("simulator", script)
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    client.S1_OMNI_BASE_URL = f"{url}/v1"
    client.S1_AUDIO_WS_BASE = f"{url.replace('http', 'ws', 1)}/v1/audio/stream"
    client.S1_CLEAR_SESSION_BASE = f"{url}/v1/session"
    client.S1_HEALTH_URL = f"{url}/health"
    client.S1_MODEL_NAME = model
    client.OUTPUT_FILENAME = out
    asyncio.run(client.OfflineSimulator(video).run())


if __name__ == "__main__":
    main(*sys.argv[1:])
