# SPDX-License-Identifier: BSD-2-Clause
"""What the long runs share: what they expect, the program's processes and what they take.

Reading this goes to the project's folder, and into a network namespace of its own where that is allowed, so that nothing
else is on its loopback.
"""
import atexit
import collections
import itertools
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

APART = os.environ.get("BENCH_APART") == "yes"
script = os.path.abspath(sys.argv[0])
os.chdir(os.path.dirname(script) + "/../..")
if APART:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
elif subprocess.run(["unshare", "--net", "true"], stderr=subprocess.DEVNULL).returncode == 0:
    os.environ["BENCH_APART"] = "yes"
    os.execvp("unshare", ["unshare", "--net", script, *sys.argv[1:]])

BUILD = os.environ.get("BUILD", "build")
PROGRAM = os.path.realpath(BUILD + "/rdmatest")
os.environ["RDMATEST_TRANSPORT"] = "soft"
_, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
folder = tempfile.mkdtemp()
alive = set()
names = itertools.count()
results = collections.Counter()


@atexit.register
def end_all():
    for life in list(alive):
        life.process.kill()
    shutil.rmtree(folder)


def say(text):
    print(text, flush=True)


def expect(what, held):
    """A line that can fail."""
    results["passed" if held else "failed"] += 1
    say(("ok   " if held else "FAIL ") + what)


def note(name, value):
    """A figure for whoever reads."""
    say(f"{name:24} {value}")


def read(path):
    with open(path, errors="replace") as file:
        return file.read()


class Life:
    """The program, running, and what it writes."""

    def __init__(self, line):
        self.path = f"{folder}/{next(names)}"
        with open(self.path + ".out", "w") as out, open(self.path + ".err", "w") as err:
            self.process = subprocess.Popen([PROGRAM, *line.split()], stdout=out, stderr=err)
        alive.add(self)

    def said(self):
        return read(self.path + ".out")

    def complained(self):
        return read(self.path + ".err")

    def summary(self):
        """Of --json; empty if there is none."""
        try:
            return collections.defaultdict(dict, json.loads(self.said()))
        except ValueError:
            return collections.defaultdict(dict)

    def runs(self):
        return self.process.poll() is None

    def end(self):
        """Waits for it; returns its status."""
        status = self.process.wait()
        alive.discard(self)
        return status

    def files(self):
        time.sleep(0.002)
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def takes(self):
        """The KiB that it has in memory, and how many descriptors; None if it has ended. The fewest of a few looks: a search
        for a route has one open for a moment."""
        try:
            return (
                int(re.search(r"VmRSS:\s*(\d+)", read(f"/proc/{self.process.pid}/status"))[1]),
                min(self.files() for _ in range(5)),
            )
        except (OSError, TypeError):
            return None

    def forget(self):
        os.remove(self.path + ".out")
        os.remove(self.path + ".err")


def serve(line, ready=" ready on "):
    """A server on 127.0.0.1, once it is ready."""
    server = Life(line)
    for _ in range(500):
        if re.search(ready, server.said()):
            return server
        time.sleep(0.02)
    sys.exit("the server is not ready: " + server.complained())


def targets(count):
    """Options for as many connections to the server, 1,024 at most."""
    return "-a 127.0.0.1 " * count


def kernel_says():
    """Of our programs: crashes, want of memory. Nothing where it may not be read."""
    text = subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace").stdout
    return [line for line in text.splitlines() if re.search("rdmatest|rping|ucmatose|Out of memory|oom-kill", line)]


kernel_said = kernel_says()


def nothing_is_left():
    """No process of ours, no socket on our loopback, no line in the kernel's log."""
    expect("no process is left", not any(life.runs() for life in alive))
    if APART:
        sockets = sum(len(read(f"/proc/net/{table}").splitlines()) - 1 for table in ("udp", "udp6"))
        expect("no socket is left", sockets == 0)
    expect("the kernel has not said a word of it", kernel_says() == kernel_said)


def finish():
    say(f"{results['passed']} passed, {results['failed']} failed")
    sys.exit(results["failed"] > 0)
