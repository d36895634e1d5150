"""A filter of the command `koel` is a filter of Python, byte for byte, and the other way round.

The environment variable KOEL names the command, if it is not `koel`.
"""

import os
import subprocess
import tempfile
from pathlib import Path

import koel

command = os.environ.get("KOEL", "koel")
folder = Path(tempfile.mkdtemp())
domains = [f"{name}.example.org" for name in "abcdefghijklmnopqrstuvwxyz"]
(folder / "domains").write_text("\n".join(domains) + "\n")

# The command builds, Python checks.
subprocess.run(
    [command, "build", "domains", "--keys", "1000", "--fpr", "0.001", "-o", "built.koel"],
    cwd=folder,
    check=True,
)
built = koel.CuckooFilter.open(folder / "built.koel")
assert built.contains_many(domains).all() and "example.com" not in built

# Python builds the same bytes.
same = koel.CuckooFilter(1000, 0.001)
same.update(domains, multi=True)
assert same.to_bytes() == (folder / "built.koel").read_bytes()

# Python changes the filter, the command checks it.
same.remove("a.example.org")
same.add("example.com")
same.save(folder / "changed.koel")
checked = subprocess.run(
    [command, "check", "changed.koel"],
    cwd=folder,
    input="a.example.org\nb.example.org\nexample.com\n",
    capture_output=True,
    text=True,
)
assert checked.stdout.split() == ["b.example.org", "example.com"], checked
print("the same", built.nbytes, "bytes:", *checked.stdout.split())
