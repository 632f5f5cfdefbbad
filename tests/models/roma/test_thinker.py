"""The thinker, fed second by second, computes what one pass over everything computes."""

import pytest
import torch

from hfd.models.roma import unit as units
from hfd.models.roma.prompt import make_turns
from hfd.models.roma.settings import parse_settings
from hfd.models.roma.steps_eager import EagerSteps
from tests.models.roma.helpers import make_units

pytestmark = pytest.mark.heavy
GRID = units.Grid(7, 12)
SHAPES = [(320, 180), (180, 320), (300, 300)]


class Stream:
    """Feeds units and text, and remembers ids, positions and states."""

    def __init__(self, parts, snapshot):
        self.parts = parts
        self.config = parts.model.config.thinker_config
        self.steps = EagerSteps(parts, parse_settings({"model_path": str(snapshot)}))
        self.steps.begin(GRID)
        self.ids, self.positions, self.hidden = [], [], []
        self.patches, self.mels, self.grid = [], [], None

    def _feed(self, ids, embeds, positions):
        thought = self.steps.think(embeds, positions)
        self.ids += ids
        self.positions.append(positions)
        self.hidden.append(thought.hidden)

    @property
    def position(self):
        return int(self.positions[-1][0, -1]) + 1 if self.positions else 0

    def text(self, ids):
        positions = units.text_positions(self.position, len(ids))
        self._feed(ids, self.steps.embed(ids), positions)

    def unit(self, unit):
        rgb = [f.rgb for f in units.two_frames(unit)]
        patches, self.grid = units.patchify(units.resize_all(rgb))
        mel = units.log_mel(self.parts.mel, unit.pcm)
        self.patches.append(patches)
        self.mels.append(mel)
        c = self.config
        media = [c.video_token_index] * self.grid.tokens + [c.audio_token_index] * 25
        opening = [c.vision_start_token_id, c.audio_start_token_id]
        closing = [c.audio_end_token_id, c.vision_end_token_id]
        seen, heard = self.steps.see(patches, self.grid), self.steps.hear(mel)
        embeds = torch.cat([self.steps.embed(opening), seen, heard, self.steps.embed(closing)])
        positions = units.unit_positions(self.position, self.grid)
        self._feed([*opening, *media, *closing], embeds, positions)

    def upstream_positions(self):
        """What `get_rope_index` says of the same sequence, int64 [3, tokens]."""
        whole = self.whole()
        wanted, _ = self.parts.model.thinker.get_rope_index(
            whole["input_ids"],
            None,
            whole["video_grid_thw"],
            whole["attention_mask"],
            True,
            whole["feature_attention_mask"].sum(-1),
            whole["video_second_per_grid"],
        )
        return wanted[:, 0].long()

    def whole(self):
        """Arguments of upstream's forward for the same sequence in one pass."""
        count, grid = len(self.patches), self.grid
        ids = torch.tensor([self.ids])
        return {
            "input_ids": ids,
            "pixel_values_videos": torch.cat(self.patches),
            "video_grid_thw": torch.tensor([[1, 2 * grid.height, 2 * grid.width]] * count),
            "input_features": torch.stack(self.mels),
            "feature_attention_mask": torch.ones(count, 100, dtype=torch.long),
            "attention_mask": torch.ones_like(ids),
            "use_audio_in_video": True,
            "video_second_per_grid": torch.ones(count),
        }


@pytest.fixture(params=SHAPES, ids=["landscape", "portrait", "square"])
def conversation(request, parts, snapshot):
    """Three seconds, a reply in the middle, three more seconds."""
    stream = Stream(parts, snapshot)
    turns = make_turns(parts.tokenizer, "Be brief.")
    width, height = request.param
    with torch.no_grad():
        stream.text(turns.opening)
        for unit in make_units(6, width=width, height=height):
            if unit.index == 3:
                stream.text(turns.to_assistant)
                for token in b"a reply.":
                    stream.text([token])
                stream.text(turns.close_cut)
            stream.unit(unit)
    return stream


def test_seconds_and_a_reply_fed_one_by_one_equal_one_pass(conversation):
    thinker = conversation.parts.model.thinker
    with torch.no_grad():
        whole = thinker(**conversation.whole()).logits[0]
        fed = thinker.lm_head(torch.cat(conversation.hidden))
    assert whole.abs().max() > 1
    assert (whole - fed).abs().max() <= 1e-4


def test_positions_equal_upstream_with_a_reply_in_the_middle(conversation):
    own = torch.cat(conversation.positions, dim=1)
    assert torch.equal(conversation.upstream_positions(), own)


@pytest.mark.parametrize("size", [*SHAPES, (2000, 60), (60, 2000)])
def test_positions_equal_upstream_without_replies(parts, snapshot, size):
    stream = Stream(parts, snapshot)
    with torch.no_grad():
        stream.text([1, 2, 3])
        for unit in make_units(3, width=size[0], height=size[1]):
            stream.unit(unit)
    assert torch.equal(stream.upstream_positions(), torch.cat(stream.positions, dim=1))


def test_sound_heard_per_second_equals_a_batch_of_seconds(parts, snapshot):
    steps = EagerSteps(parts, parse_settings({"model_path": str(snapshot)}))
    mels = [units.log_mel(parts.mel, unit.pcm) for unit in make_units(4)]
    with torch.no_grad():
        single = torch.cat([steps.hear(mel) for mel in mels])
        batch = parts.model.thinker.get_audio_features(
            torch.stack(mels), feature_attention_mask=torch.ones(4, 100, dtype=torch.long)
        ).last_hidden_state
    assert single.shape[0] == 4 * units.AUDIO_TOKENS
    assert (single - batch).abs().max() <= 1e-4


def test_pictures_seen_per_second_equal_one_video(parts, snapshot):
    steps = EagerSteps(parts, parse_settings({"model_path": str(snapshot)}))
    seconds = [
        units.patchify(units.resize_all([f.rgb for f in units.two_frames(unit)]))
        for unit in make_units(3)
    ]
    grid = seconds[0][1]
    with torch.no_grad():
        single = torch.cat([steps.see(patches, grid) for patches, _ in seconds])
        video = parts.model.thinker.get_video_features(
            torch.cat([patches for patches, _ in seconds]),
            torch.tensor([[3, 2 * grid.height, 2 * grid.width]]),
        ).pooler_output[0]
    assert (single - video).abs().max() <= 1e-4
