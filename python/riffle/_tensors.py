"""What the session is told of a model's tensors, and tensors made from the session's memory."""

import warnings
from collections.abc import Iterable

import torch

from riffle._core import Memory, UsageError

WORDS = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
}
DTYPES = {word: dtype for dtype, word in WORDS.items()}
Spec = tuple[str, int, str, int]


def describe(name: str, tensor: torch.Tensor, on_host: bool = True) -> Spec:
    """Name, elements, dtype and address; refuses what cannot be exchanged, with the reason."""
    if tensor.layout != torch.strided:
        raise UsageError(f"{name} is sparse ({tensor.layout}); only dense tensors are exchanged")
    if on_host and tensor.device.type != "cpu":
        raise UsageError(
            f"{name} is on {tensor.device}; this engine exchanges memory of the host, engine="
            "riffle.c10d() that of any device"
        )
    if tensor.dtype not in WORDS:
        raise UsageError(f"{name} is {tensor.dtype}; exchanged are {', '.join(WORDS.values())}")
    if not tensor.is_contiguous():
        raise UsageError(f"{name} is not contiguous (strides {tensor.stride()}); make it so first")
    return name, tensor.numel(), WORDS[tensor.dtype], tensor.data_ptr()


def trained(model: torch.nn.Module) -> list[tuple[str, torch.nn.Parameter]]:
    """Parameters that get gradients, shared ones once, in the order they were registered."""
    for name, module in model.named_modules():
        if getattr(module, "sparse", False) and isinstance(module, torch.nn.Module):
            raise UsageError(
                f"module {name or 'model'} makes sparse gradients (sparse=True); they cannot be "
                "averaged in place, so use sparse=False"
            )
    return [(name, p) for name, p in model.named_parameters() if p.requires_grad]


def float_buffers(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Buffers with a mean, such as BatchNorm's statistics; counters have none."""
    return [(name, b) for name, b in model.named_buffers() if b.is_floating_point() and b.numel()]


def untrained(model: torch.nn.Module) -> list[torch.Tensor]:
    """Frozen parameters and buffers without a mean: they start as rank 0's, and are left alone."""
    averaged = {id(b) for _, b in float_buffers(model)}
    frozen = [p for p in model.parameters() if not p.requires_grad]
    return [t for t in [*frozen, *model.buffers()] if t.numel() and id(t) not in averaged]


def view(memory: Memory, like: torch.Tensor) -> torch.Tensor:
    """A tensor of the session's memory, in the shape of another one. It keeps the session alive."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.frombuffer(memory, dtype=like.dtype).view(like.shape)


def copy_out(tensors: Iterable[torch.Tensor]) -> None:
    """Gives tensors memory of their own again."""
    for tensor in tensors:
        tensor.data = tensor.data.clone()
