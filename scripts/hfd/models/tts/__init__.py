"""The streaming TTS server: text in by the token, 80 ms of speech out by the frame.

``protocol`` is all that a client needs; ``messages`` checks what a client says, ``server`` is the
websocket, ``speech`` one utterance, ``schedule`` who speaks when; ``talker``, ``steps`` and
``codec`` run stock qwen-tts (its own environment, envs/tts.yaml).
"""
