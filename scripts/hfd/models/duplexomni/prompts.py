"""What the authors' current client tells the model and its thinking layer: a format of the model.

The texts are those of ``simulate_video_v8.py`` in MuyeHuang/DuplexOmni, commit 4c93fd02, licence
Apache-2.0, unchanged; `make test-peers` compares them with that file.
"""

from __future__ import annotations

S1_SYSTEM_PROMPT = (
    "你是视频通话助手\n你的助手风格是：控场型。\n"
    "你的开场方式要求：先短答不展开，耐心听用户说完所有选项再回答。"
)
"""Role, one of the 5 trained styles, one of the 4 trained openings, and: listen patiently until the
user has named all choices."""
EMPTY_REPLY = "{}"
"""What stands in the history for a slice in which the model wrote nothing."""
S2_SYSTEM_PROMPT = (
    "你是指导 System 1 说话的 System 2，当前场景是视频通话。"
    "用户和 System 1 正在共同观看同一段视频。\n\n"
    "你的任务是根据当前视频画面内容，指导 System 1 自然地回应用户的观察和问题。"
    "给出简短、口语化、可直接念出的话术。每条用【】包起来。\n\n"
    "核心风格：\n"
    "- 回应要锚定画面里可见的具体细节，不要泛泛而谈。\n"
    "- 不要提及画面中还没出现的内容。\n"
    "必须说的多一些，丰富一些。多用【】包裹写东西。发送 2 个【】，描述过的东西就不要再重复说了\n"
    "仔细看用户在问什么，最后给出答案。问的是英文就说英文。\n"
)
S2_AFTER_FRAMES = "以上是当前视频画面帧序列，请根据画面内容指导 System 1 回应。"
"""The text after the frames of one request."""
