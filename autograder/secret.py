# SPDX-License-Identifier: MIT
"""The course secret, and the seeds of hidden inputs drawn from it.

A seed depends on the secret, the assignment and the check, on nothing else: all students of a
course get the same hidden inputs, a re-run repeats them, and another course has other ones.
"""

import hashlib
import hmac
import os
import secrets
import tempfile
from pathlib import Path

__all__ = ["SecretError", "check_seed", "new_secret", "read_secret", "secret_name"]

FILE = "secret"
BYTES = 32


class SecretError(ValueError):
    """The secret's file is damaged, or others can read it."""


def read_secret(state_dir: Path) -> bytes:
    """Return the course secret; the first call makes it.

    Raises: SecretError if the file is damaged, a link, or readable by others.
    """
    path = state_dir / FILE
    if not os.path.lexists(path):
        _write(path, replace=False)
    if path.is_symlink() or not path.is_file():
        raise SecretError(f"{path} must be a plain file. Remove it; the next run makes a new one.")
    if path.stat().st_mode & 0o077:
        raise SecretError(f"{path} can be read by others. Run: chmod 600 {path}")
    try:
        secret = bytes.fromhex(path.read_text("ascii").strip())
    except ValueError:
        secret = b""
    if len(secret) != BYTES:
        raise SecretError(f"{path} is damaged. `autograder grade --new-seed` makes a new one.")
    return secret


def new_secret(state_dir: Path) -> bytes:
    """Replace the course secret: all hidden inputs are drawn anew, and all results are stale."""
    _write(state_dir / FILE, replace=True)
    return read_secret(state_dir)


def check_seed(secret: bytes, assignment: str, check_id: str) -> int:
    """Return the seed of a check's hidden inputs: 63 bits of HMAC-SHA256."""
    message = f"{assignment}\0{check_id}".encode()
    return int.from_bytes(hmac.digest(secret, message, hashlib.sha256)[:8], "big") >> 1


def secret_name(secret: bytes) -> str:
    """Return 12 hex digits that tell secrets apart and tell nothing else."""
    return hmac.digest(secret, b"name", hashlib.sha256).hex()[:12]


def _write(path: Path, *, replace: bool) -> None:
    """Write a new secret in one step; without `replace`, one that another process wrote wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".secret-", dir=path.parent)  # mode 600
    try:
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_hex(BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(name, path)
        else:
            try:
                os.link(name, path)
            except FileExistsError:
                pass
    finally:
        if os.path.exists(name):
            os.unlink(name)
