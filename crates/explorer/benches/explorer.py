"""The explorer under load, the time to open a large model, and the size of a report.

    python crates/explorer/benches/explorer.py [--program latens] [--data DIR] [--record results/explorer.jsonl]

Uses the standard library only. `--data` has `20news/20news.tsv` (see docs/data.md), for the report. The clients run on the
same machine as the server.
"""

from __future__ import annotations

import argparse
import array
import datetime
import http.client
import json
import random
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

N_REQUESTS, N_CLIENTS = 10_000, 64
N_VECTORS, DIM = 833_000, 300
SCRIPT = "python crates/explorer/benches/explorer.py"


class Explorer:
    """A running explorer."""

    def __init__(self, program: str, folder: Path, *models: str) -> None:
        command = [program, "explore", *models, "--no-browser", "--quiet"]
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.host = self.process.stdout.readline().split("/")[2]
        self.loaded = time.perf_counter()

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host)

    def ask(self, connection: http.client.HTTPConnection, item: int, view: str, args: dict) -> bytes:
        body = json.dumps({"item": item, "view": view, "args": args})
        connection.request("POST", "/api/query", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{view}: {answer.status} {content!r}")
        return content

    def memory(self) -> float:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait() == 0


def head() -> str:
    """The commit that is checked out."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="latens")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--machine", help="an id of docs/machines.md, for `--record`")
    args = parser.parse_args()
    if args.record and not args.machine:
        parser.error("`--record` needs `--machine`, an id of docs/machines.md")
    records = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records += load(args.program, folder)
        records += opening(args.program, folder)
        if args.data:
            records += report(args.program, folder, args.data)
    for record in records:
        print(f"{record['model']}, {record['data']}: {record['metric']} {record['value']} {record['unit']}")
    if args.record:
        shared = {"commit": head(), "machine": args.machine, "date": datetime.date.today().isoformat()}
        write(args.record, [{**record, **shared} for record in records])


def run(program: str, folder: Path, *command: str) -> None:
    subprocess.run([program, *command, "--quiet"], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def load(program: str, folder: Path) -> list[dict]:
    """Many clients ask for cheap views of the models of the demo."""
    run(program, folder, "demo", "-o", ".", "--only", "ngram,brown,hmm,word2vec,lda")
    models = ["demo.lda", "demo.hmm", "demo.word2vec", "demo.brown", "demo.ngram"]
    views = [
        (0, "topics", {}), (0, "topic", {"topic": 3, "lambda": 0.6}), (0, "search", {"word": "sea"}),
        (1, "states", {}), (1, "state", {"state": 5}), (1, "sentence", {"text": "the ship sails"}),
        (2, "map", {}), (2, "neighbors", {"word": "ship"}), (3, "node", {}), (4, "text", {"text": "the ship"}),
    ]
    explorer = Explorer(program, folder, *models)
    for view in views:
        explorer.ask(explorer.connect(), *view)
    clients(explorer, views, 1000)
    before = explorer.memory()
    rounds = [clients(explorer, views, N_REQUESTS) for _ in range(3)]
    grown = explorer.memory() - before
    explorer.stop()
    times = min(rounds, key=lambda times: quantile(times, 0.99))
    data = f"{N_REQUESTS:,} requests, {N_CLIENTS} at a time"
    note = f"no errors; median {1000 * statistics.median(times):.0f} ms; best of three rounds; the clients share the two cores"
    return [
        figure("load-p99", "cheap views", data, "99th percentile of the time to answer", "ms", 1000 * quantile(times, 0.99), 1, note),
        figure("load-memory", "cheap views", data, "growth of resident memory", "MB", grown, 1, f"from {before:.1f} MB, over three rounds"),
    ]


def clients(explorer: Explorer, views: list, n_requests: int) -> list[float]:
    """Asks for views from several threads. Returns the times; fails on any error."""
    times: list[float] = []
    problems: list[Exception] = []

    def work(seed: int) -> None:
        rng, connection = random.Random(seed), explorer.connect()
        try:
            for _ in range(n_requests // N_CLIENTS + (seed < n_requests % N_CLIENTS)):
                start = time.perf_counter()
                explorer.ask(connection, *rng.choice(views))
                times.append(time.perf_counter() - start)
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(N_CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems and len(times) == n_requests, problems
    return times


def opening(program: str, folder: Path) -> list[dict]:
    """A model of 1 GB, from the address of the page to the map and the neighbors that it shows first."""
    rng = random.Random(1)
    noise = array.array("f", (rng.gauss(0, 1) for _ in range(1 << 20)))
    with (folder / "vectors.bin").open("wb") as file:
        file.write(f"{N_VECTORS} {DIM}\n".encode())
        for word in range(N_VECTORS):
            begin = word * 7919 % (len(noise) - DIM)
            file.write(f"w{word} ".encode() + noise[begin : begin + DIM].tobytes() + b"\n")
    run(program, folder, "import", "--from", "word2vec-binary", "vectors.bin", "-o", "big.vectors")
    shown, neighbors, tsne = [], [], []
    for _ in range(3):
        explorer = Explorer(program, folder, "big.vectors")
        connection = explorer.connect()
        word = json.loads(explorer.ask(connection, 0, "map", {}))["words"][0]["word"]
        explorer.ask(connection, 0, "neighbors", {"word": word})
        shown.append(time.perf_counter() - explorer.loaded)
        for other in range(5):
            start = time.perf_counter()
            explorer.ask(connection, 0, "neighbors", {"word": f"w{1000 * other}"})
            neighbors.append(time.perf_counter() - start)
        start = time.perf_counter()
        while b'"progress"' in explorer.ask(connection, 0, "map", {"projection": "tsne"}):
            time.sleep(0.05)
        tsne.append(time.perf_counter() - start)
        explorer.stop()
    model, data = "`vectors`, 1 GB", f"{N_VECTORS:,} words, {DIM} dimensions"
    return [
        figure("open-1gb", model, data, "time from loading to the first view", "s", min(shown), 2, "the map, and the neighbors of a word"),
        figure("neighbors-1gb", model, data, "time to find neighbors", "ms", 1000 * statistics.median(neighbors), 0, None),
        figure("tsne", "map by t-SNE", "600 words, 300 dimensions", "time in the background", "s", min(tsne), 1, "one thread, once per model"),
    ]


def report(program: str, folder: Path, data: Path) -> list[dict]:
    """A report of 50 topics on 20 newsgroups."""
    news = str(data.resolve() / "20news/20news.tsv")
    reading = ["--fields", "label,split,text"]
    run(program, folder, "train", "lda", news, *reading, "--n-topics", "50", "--n-iterations", "200", "--min-count", "5", "-o", "news.lda")
    run(program, folder, "report", "news.lda", "-o", "topics.html")
    run(program, folder, "report", "news.lda", "--documents", news, *reading, "--by", "label", "-o", "documents.html")
    size = lambda name: (folder / name).stat().st_size / 1e6  # noqa: E731
    model, corpus = "`lda`, 50 topics", "20 newsgroups"
    return [
        figure("report-topics", model, corpus, "size of a report", "MB", size("topics.html"), 2, None),
        figure("report-documents", model, corpus, "size of a report with documents", "MB", size("documents.html"), 2, "`--documents`, `--by label`"),
    ]


def quantile(times: list[float], share: float) -> float:
    return sorted(times)[int(share * len(times))]


def figure(name: str, model: str, data: str, metric: str, unit: str, value: float, digits: int, note: str | None) -> dict:
    return {
        "id": f"explorer-{name}", "model": model, "data": data, "metric": metric, "unit": unit, "value": round(value, digits),
        "spread": None, "reference": None, "command": f"{SCRIPT} --data DIR", "note": note,
    }


def write(path: Path, records: list[dict]) -> None:
    ids = {record["id"] for record in records}
    old = path.read_text().splitlines() if path.exists() else []
    lines = [line for line in old if json.loads(line)["id"] not in ids]
    path.write_text("\n".join(lines + [json.dumps(record, ensure_ascii=False) for record in records]) + "\n")


if __name__ == "__main__":
    main()
