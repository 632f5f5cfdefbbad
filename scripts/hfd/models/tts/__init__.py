"""The streaming TTS server: text in by the token, 80 ms of speech out by the frame.

``protocol`` is all that a client needs; ``speech`` decides when the talker steps, ``server`` is the
websocket, ``talker`` runs stock qwen-tts (its own environment, envs/tts.yaml).
"""
