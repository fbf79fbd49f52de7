"""A container for tests without a container runtime: a root of its own that is read-only, and user 65534."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from sysconfig import get_path

NOBODY = 65534
DATA = "/data"  # what can be written, as an emptyDir
HOME = "/home/nobody"  # is not there

# $1 is the root, what follows are pairs of a place outside and inside, up to --, then what is to be run. Mounts
# end with the process, which is the only one that sees them.
_SCRIPT = """
set -eu
root=$1; shift
mount -t tmpfs -o mode=755 tmpfs "$root"
cd "$root"
while [ "$1" != -- ]; do
    mkdir -p ".$2"
    mount --bind "$1" ".$2"
    if [ "$2" != /data ]; then mount -o remount,bind,ro ".$2"; fi
    shift 2
done
shift
for name in bin lib lib64; do [ -L "/$name" ] && cp -P "/$name" . || true; done
mkdir proc && mount -t proc proc proc
mkdir dev && for name in null zero urandom; do : > "dev/$name"; mount --bind "/dev/$name" "dev/$name"; done
mount -o remount,ro "$root"
exec chroot . setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set=-all -- "$@"
"""
_UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
_PROGRAMS = ("unshare", "mount", "chroot", "setpriv")


def why_not() -> str | None:
    """Return why there can be no such container here, None where there can."""
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"expected {', '.join(missing)} on PATH"
    tried = subprocess.run([*_UNSHARE, "true"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"expected unshare to be permitted, it said: {tried.stderr.strip()}"


class Container:
    """Where Python runs as user 65534, can write nothing but one folder, and sees nothing else of the machine.

    Parameters
    ----------
    folder : Path
        Where the container is built: an empty one.
    site : Path
        A folder of installed packages. What they need besides is this environment's, but not its own packages.

    Attributes
    ----------
    data : Path
        What is `DATA` inside.
    """

    def __init__(self, folder: Path, site: Path) -> None:
        self._root = folder / "root"
        self.data = folder / "data"
        for each in (self._root, self.data):
            each.mkdir()
        # The interpreter goes to where it is outside: it finds its library from there.
        inside = {Path("/usr"): "/usr", Path(sys.base_prefix): sys.base_prefix, site: "/site", self.data: DATA}
        inside[Path(get_path("purelib"))] = "/needed"  # not by a .pth file, so those in there are not followed
        self._places = [str(each) for pair in inside.items() for each in pair]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python with these arguments, and none of the variables outside."""
        for each in (self.data, *self.data.iterdir()):
            os.chown(each, NOBODY, NOBODY)
        python = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
        script = ["sh", "-c", _SCRIPT, "sh", str(self._root), *self._places, "--", str(python), *arguments]
        told = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": HOME, "PYTHONPATH": "/site:/needed"}
        return subprocess.run([*_UNSHARE, *script], env=told, capture_output=True, text=True, check=False)
