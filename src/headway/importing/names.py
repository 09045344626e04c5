"""The kinds of logs by name, apart from what reads them, which takes a moment to load."""

from collections.abc import Mapping

AUTO = "auto"
TITLES: Mapping[str, str] = {
    AUTO: "logs of any known kind, also mixed",
    "megatron": "Megatron-LM, Megatron core, Megatron-DeepSpeed and DeepSpeed",
    "torchtitan": "torchtitan",
    "huggingface": "Hugging Face Trainer, LLaMA-Factory, axolotl",
    "lightning": "PyTorch Lightning",
    "nemo": "NVIDIA NeMo",
    "maxtext": "MaxText and Orbax",
    "openmmlab": "OpenMMLab: mmcv and mmengine",
    "m4": "the trainer of IDEFICS (m4)",
    "nvrx-benchmark": "the published NVRx benchmark",
    "torchrun": "torchrun and torchelastic, with its failure table",
    "nvrx": "NVRx: ft_launcher, its profile of restarts, in-process restarts",
    "nccl": "PyTorch's NCCL watchdog",
    "slurm": "lines of Slurm and of scripts that watch its jobs",
    "errors": "Python tracebacks and the last words of processes",
    "kubernetes": "pods and events of `kubectl get -o json`",
    "goodput-events": "events of AI-Hypercomputer's goodput_measure",
    "events": "Headway's own events, one JSON object a line",
}
"""What each kind of log is, by its name on the command line."""
