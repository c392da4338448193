"""Named arrays in one file: safetensors, with a text and a SHA-256 digest over text and arrays."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import safetensors.numpy
from jaxtyping import PyTree

LARGEST_HEADER = 10_000_000
Tensors = dict[str, np.ndarray]


def named(tree: PyTree) -> Tensors:
    """All leaves of a tree of arrays, by where they are in it."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {name_of(where): np.asarray(leaf) for where, leaf in leaves}


def name_of(where: tuple[Any, ...]) -> str:
    """The name of a leaf, from its path in the tree."""
    keys = (getattr(k, "name", getattr(k, "key", getattr(k, "idx", k))) for k in where)
    return ".".join(str(k) for k in keys)


def pack(text: str, tensors: Tensors) -> bytes:
    """The content of a file, the same for the same arrays."""
    content = safetensors.numpy.save(tensors, {"spenn": text, "sha256": digest(text, tensors)})
    size = int.from_bytes(content[:8], "little")
    # The library writes texts in an order that changes from one process to the next.
    header = json.dumps(json.loads(content[8 : 8 + size]), sort_keys=True).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


def text_of(content: bytes) -> tuple[str, str]:
    """Text and stated digest, with sizes checked before anything is parsed."""
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > min(LARGEST_HEADER, len(content) - 8):
        raise ValueError("is not a spenn file, or it is cut short")
    try:
        metadata = json.loads(content[8 : 8 + size])["__metadata__"]
        text, stated = metadata["spenn"], metadata["sha256"]
        text.encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("is not a spenn file") from None
    return text, stated


def unpack(content: bytes) -> tuple[str, Tensors]:
    """Text and arrays of a file, whose digest is checked."""
    text, stated = text_of(content)
    try:
        tensors = safetensors.numpy.load(content)
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise ValueError(f"is damaged: {reason}") from None
    if digest(text, tensors) != stated:
        raise ValueError("is damaged: its content does not have the digest it states")
    return text, tensors


def digest(text: str, tensors: Mapping[str, np.ndarray]) -> str:
    """SHA-256 over a text and named arrays."""
    total = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        total.update(f"{name} {array.dtype.str} {array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()
