"""Measures the records of results/memory.jsonl: estimates of `--dry-run` and peak memory.

    python crates/experiments/memory.py DIR --machine ID [--program target/release/latens] [--only foo]

DIR has the layout of docs/data.md. For a new model, write its two records with the values 0 first: their commands are what
is run. `--only foo` measures the records whose ids start with `memory-foo-`. Commands run in a temporary folder with two
threads.

Records are overwritten: their value, commit, machine and date. To keep superseded figures, first copy the records with ids that
start otherwise, and show them in docs/results/log/memory.md.

The peak is the maximum resident set size. MB are 10^6 bytes.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

RECORDS = Path("results/memory.jsonl")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--program", type=Path, default=Path("target/release/latens"))
    parser.add_argument("--only", default="")
    parser.add_argument("--commit", help="of the program; by default the commit that is checked out")
    parser.add_argument("--machine", required=True, help="an id of docs/machines.md")
    args = parser.parse_args()
    commit = args.commit or head()
    program = args.program.resolve(strict=True)
    lines = RECORDS.read_text().splitlines()
    # Superseded records start otherwise.
    prefix = f"memory-{args.only}-" if args.only else "memory-"
    with tempfile.TemporaryDirectory() as folder:
        link(args.data.resolve(strict=True), Path(folder))
        for i, line in enumerate(lines):
            record = json.loads(line)
            if record["id"].startswith(prefix):
                before = record["value"]
                record["value"] = round(measure(program, record, Path(folder)) / 1e6)
                record["commit"], record["machine"] = commit, args.machine
                record["date"] = str(datetime.date.today())
                lines[i] = json.dumps(record, ensure_ascii=False)
                print(f"{record['id']}: {before} MB, now {record['value']} MB", flush=True)
                RECORDS.write_text("".join(f"{line}\n" for line in lines))


def head() -> str:
    """The commit that is checked out."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()


def link(data: Path, folder: Path) -> None:
    """Commands name files without a folder, or with the last one."""
    for path in sorted(data.rglob("*")):
        link = folder / path.name
        if not link.exists():
            link.symlink_to(path, target_is_directory=path.is_dir())


def measure(program: Path, record: dict, folder: Path) -> float:
    """The bytes of the last command, after those that make its input."""
    *before, last = record["command"].splitlines()
    for command in before:
        # A file of this name in DIR must not be written through its link.
        if ">" in command:
            (folder / command.rsplit(">", 1)[1].strip()).unlink(missing_ok=True)
        subprocess.run(command, shell=True, check=True, cwd=folder)
    command = [str(program), *shlex.split(last)[1:], "--threads", "2"]
    if record["metric"] == "estimate":
        run = subprocess.run([*command, "--json"], check=True, cwd=folder, capture_output=True, text=True)
        return json.loads(run.stdout)["memory_bytes"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    # Linux counts in KiB.
    return usage.ru_maxrss * 1024


if __name__ == "__main__":
    main()
