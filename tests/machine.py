"""A machine of its own for tests that install packages, add users and start services: this one stays as it is."""

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

NAMESPACES = ["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup"]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def why_none():
    """Why there can be no such machine here; "" if there can."""
    for program in ("apt-get", "unshare", "nsenter", "/lib/systemd/systemd"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if os.geteuid() != 0:
        return "only root can install packages"
    mount = """
        mount -t tmpfs tmpfs /mnt
        cd /mnt
        mkdir upper work root proc sys cgroup
        mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
        mount -t proc proc proc
        mount -t sysfs -o ro sysfs sys
        mount -t cgroup2 cgroup2 cgroup
    """
    tried = subprocess.run(
        ["unshare", *NAMESPACES, "--fork", "sh", "-ec", mount], capture_output=True, encoding="utf-8"
    )
    return tried.stderr.strip()


class Machine:
    """A machine whose first process is systemd."""

    def __init__(self, folder):
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or "proxy" in name.lower()}
        self.environment = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", **kept}
        begin = ["sh", Path(__file__).with_name("machine.sh"), folder]
        with open(folder / "log", "w", encoding="utf-8") as log:
            self._unshare = subprocess.Popen(
                ["unshare", *NAMESPACES, "--fork", "--kill-child", *begin],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            self._boot()
        except BaseException:
            self.end()
            raise

    def _boot(self):
        children = Path(f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children")
        self._pid = int(wait(children.read_text))
        self.root = Path(f"/proc/{self._pid}/root")
        wait(lambda: Path(f"/proc/{self._pid}/comm").read_text(encoding="utf-8") == "systemd\n")
        wait(lambda: self.run("systemctl is-system-running", check=False).stdout in ("running\n", "degraded\n"))

    def run(self, script, check=True, is_online=False, **options):
        """Run commands there, as root; `is_online` with the network of this machine, to install something."""
        namespaces = [option for option in NAMESPACES if not (is_online and option == "--net")]
        enter = ["nsenter", "--target", str(self._pid), *namespaces, "--root"]
        done = subprocess.run(
            [*enter, "bash", "-euo", "pipefail", "-c", f"cd\n{script}"],
            env=self.environment,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            **options,
        )
        assert not check or done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done

    def end(self):
        self._unshare.kill()
        self._unshare.wait()


@contextlib.contextmanager
def running(folder):
    machine = Machine(folder)
    try:
        yield machine
    except BaseException:
        print(machine.run("journalctl --no-pager --lines 200", check=False).stdout)
        raise
    finally:
        machine.end()


def wait(condition, seconds=120):
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            if result := condition():
                return result
        assert time.monotonic() < end
        time.sleep(0.05)
