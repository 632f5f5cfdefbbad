"""Load Gander through its public package: MiniCPM-o 4.5's code and vocoder, Gander's weights."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from typing import Any

import torch

from hfd.duplex.model import Identity
from hfd.files import sha256_file
from hfd.models.gander import checkpoint
from hfd.models.gander.checkpoint import Release
from hfd.models.gander.model import MAX_TOKENS
from hfd.models.gander.session import GanderParts
from hfd.models.gander.settings import Settings
from hfd.models.minicpmo import checkpoint as base
from hfd.models.minicpmo import loader, upstream
from hfd.models.minicpmo.acceleration import accelerate
from hfd.models.minicpmo.checkpoint import Snapshot


def load_parts(settings: Settings) -> GanderParts:
    """Check everything, then load onto the GPU.

    Raises:
        HfdError: all that is wrong with packages, files, voice, device and code.
    """
    device = loader.pick_device(settings.device)
    snapshot = base.find_snapshot(settings.model_path, settings.voice)
    release = checkpoint.find_release(settings)
    problems = [*loader.package_problems(), *base.snapshot_problems(snapshot)]
    problems += checkpoint.release_problems(release)
    if device.type != "cuda":
        problems.append("the public package loads onto a GPU only")
    problems += loader.memory_problems(device, settings.min_free_gpu_gb)
    checkpoint.refuse(settings, problems)
    loader.use_own_module_cache()
    loader.use_repeatable_kernels()
    package = import_package(release.package)
    torch.manual_seed(loader.LOAD_SEED)
    arguments = package["mcpmft.args"].ModelArguments(
        model_name_or_path=str(snapshot.folder),
        processor_name_or_path=str(snapshot.folder),
        torch_dtype="bfloat16" if settings.dtype == "auto" else settings.dtype,
        attn_implementation="sdpa",
    )
    bundle = package["mcpmft.infer.common"].load_for_infer(
        arguments, checkpoint=str(release.thinker), talker_checkpoint=str(release.talker)
    )
    weights = checkpoint.weights_hash(release, base.weights_hash(snapshot)[0])
    return make_parts(settings, snapshot, release, bundle, package, weights)


def import_package(folder: Path) -> dict[str, Any]:
    """The modules of the public package that are called, by name; the user's clone is trusted."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    names = ("mcpmft.args", "mcpmft.infer.common", "mcpmft.infer.online", "mcpmft.prompts")
    return {name: importlib.import_module(name) for name in names}


def make_parts(
    settings: Settings,
    snapshot: Snapshot,
    release: Release,
    bundle: Any,
    package: dict[str, Any],
    weights: str | None,
) -> GanderParts:
    """Everything that follows from a loaded bundle; tests give one of random weights.

    Args:
        settings, snapshot, release: what was asked for, and where its files lie.
        bundle: the public package's model, tokenizer and processor.
        package: from `import_package`.
        weights: hash of the weights.

    Raises:
        HfdError: the code lacks what the runner calls.
    """
    model = bundle.model
    model.requires_grad_(False)
    window = loader.unset_windows(model)
    online = package["mcpmft.infer.online"]
    torch.manual_seed(loader.LOAD_SEED)
    runner = online.OnlineRunner(bundle, make_params(online, settings))
    duplex = runner.duplex
    loader.freeze_vocoder(duplex)
    checkpoint.refuse(settings, upstream.code_problems(duplex))
    loader.watch_log(type(model).__module__)
    began = time.perf_counter()
    faster = accelerate(duplex, settings, model.device, str(snapshot.voice))
    identity = Identity(
        name="Gander",
        weights=weights,
        dtypes=loader.dtype_counts(model),
        versions=loader.versions(),
        device=loader.device_name(model.device),
        max_context_tokens=MAX_TOKENS,
        detail={
            "code": base.code_hashes(snapshot.folder),
            "package": checkpoint.code_hashes(release),
            "package_commit": checkpoint.commit(release),
            "manifest_sha256": sha256_file(release.manifest) if release.manifest else None,
            "voice_sha256": sha256_file(snapshot.voice),
            "attention": "sdpa",
            "window": "off",
            "sliding_window_unset": window,
            "speech_codes": settings.speech_codes,
            "text_tokens": settings.text_tokens,
            "load_seed": loader.LOAD_SEED,
            "warm_up_s": round(time.perf_counter() - began, 3),
            **faster.facts,
        },
    )
    return GanderParts(
        duplex=duplex,
        voice=loader.read_voice(snapshot.voice),
        voice_path=str(snapshot.voice),
        seed=torch.manual_seed,
        no_codes=lambda: torch.empty(1, 0, 1, dtype=torch.long, device=model.device),
        positions=min(MAX_TOKENS, int(model.config.max_position_embeddings)),
        talker_positions=int(model.tts.config.max_position_embeddings),
        identity=identity,
        look_ahead=faster.look_ahead,
        runner=runner,
        prompt=getattr(package.get("mcpmft.prompts"), "GANDER_DUPLEX_SYSTEM_PROMPT", None),
    )


def make_params(online: Any, settings: Settings) -> Any:
    """The release's values; the window is off, so nothing is ever dropped."""
    return online.DuplexParams(
        speak_text_tokens_per_unit=settings.text_tokens,
        max_new_speak_tokens_per_chunk=settings.tokens_per_unit,
        decode_mode=settings.decode,
        generate_audio=True,
        n_timesteps=settings.num_steps,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
        sliding_window_mode=settings.window,
        talker_speech_tokens_per_unit=settings.speech_codes,
        talker_final_speech_tokens_max=0,
    )
