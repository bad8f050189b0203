# SPDX-License-Identifier: MIT
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from autograder.secret import SecretError, check_seed, new_secret, read_secret, secret_name


def test_made_once_readable_by_its_owner_only(tmp_path):
    secret = read_secret(tmp_path / "state")
    assert len(secret) == 32 and read_secret(tmp_path / "state") == secret
    assert (tmp_path / "state" / "secret").stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path / "state") == ["secret"]  # no scratch file is left


def test_many_first_readers_agree(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: read_secret(tmp_path / "state"), range(32)))) == 1


def test_new_secret_draws_anew(tmp_path):
    first = read_secret(tmp_path)
    second = new_secret(tmp_path)
    assert first != second == read_secret(tmp_path)
    assert secret_name(first) != secret_name(second)
    assert secret_name(first) not in first.hex()


def test_seed_depends_on_secret_assignment_and_check():
    seeds = [
        check_seed(secret, assignment, check)
        for secret in (b"a" * 32, b"b" * 32)
        for assignment in ("01", "02")
        for check in ("one", "two")
    ]
    assert len(set(seeds)) == 8 and all(0 <= seed < 2**63 for seed in seeds)
    # the first 8 bytes of HMAC-SHA256("01\\0one") with the key aaaa…, halved
    assert seeds[0] == 6409908164270911911


@pytest.mark.parametrize("content", ["", "zz", "00" * 31, "00" * 33])
def test_a_damaged_secret_is_refused_not_replaced(tmp_path, content):
    read_secret(tmp_path)
    (tmp_path / "secret").write_text(content)
    with pytest.raises(SecretError, match="new-seed"):
        read_secret(tmp_path)
    assert (tmp_path / "secret").read_text() == content


def test_a_secret_that_others_can_read_or_a_link_is_refused(tmp_path):
    read_secret(tmp_path)
    (tmp_path / "secret").chmod(0o644)
    with pytest.raises(SecretError, match="chmod 600"):
        read_secret(tmp_path)
    (tmp_path / "secret").rename(tmp_path / "elsewhere")
    (tmp_path / "secret").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SecretError, match="plain file"):
        read_secret(tmp_path)
