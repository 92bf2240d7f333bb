"""Training steps of a recurrent network beside PyTorch: milliseconds per step, on the CPU.

    python crates/python/benches/rnn.py TEXT VOCAB [--program latens] [--threads 2]

Both programs train the network of `latens train rnn` on the same text, in turn: 20 × 20 tokens per step, dropout, clipped
gradients and AdamW. Reading the text and starting do not count.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import torch

# The defaults of `latens train rnn`.
DIM, STREAMS, STEPS, DROPOUT, CLIP, RATE = 300, 20, 20, 0.2, 1.0, 5e-4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("vocab", type=Path, help="vocabulary that `latens vocab` wrote")
    parser.add_argument("--words", type=int, default=10_000, help="size of the vocabulary, for PyTorch")
    parser.add_argument("--program", default="latens")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    n_tokens = sum(len(line.split()) + 1 for line in args.text.read_text(encoding="utf-8").splitlines())
    n_steps = -(-(n_tokens // STREAMS) // STEPS)
    print(f"{n_tokens:,} tokens, {n_steps} steps per epoch, PyTorch {torch.__version__}", flush=True)
    theirs, ours = [], []
    for _ in range(args.runs):
        theirs.append(step_torch(args.words, n_steps))
        ours.append(step_latens(args.program, args.text, args.vocab, args.threads, args.epochs, n_steps))
        print(f"PyTorch {theirs[-1]:.1f} ms, latens {ours[-1]:.1f} ms: {theirs[-1] / ours[-1]:.2f} times", flush=True)
    for name, values in [("PyTorch", theirs), ("latens", ours), ("ratio", [a / b for a, b in zip(theirs, ours)])]:
        print(f"{name}: median {statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})")


class Network(torch.nn.Module):
    """h = tanh(x + A h) step by step, between an embedding and a linear layer."""

    def __init__(self, n_words: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(n_words, DIM)
        self.recurrent = torch.nn.Parameter(torch.empty(DIM, DIM).uniform_(-0.1, 0.1))
        self.output = torch.nn.Linear(DIM, n_words)
        self.dropout = torch.nn.Dropout(DROPOUT)

    def forward(self, words: torch.Tensor, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        vectors = self.dropout(self.embedding(words))
        states = []
        for vector in vectors:
            hidden = torch.tanh(vector + hidden @ self.recurrent)
            states.append(hidden)
        return self.output(self.dropout(torch.stack(states))), hidden.detach()


def step_torch(n_words: int, n_steps: int) -> float:
    torch.manual_seed(1)
    network = Network(n_words)
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.0)
    words = torch.randint(n_words, (n_steps + 3, STEPS + 1, STREAMS))
    hidden = torch.zeros(STREAMS, DIM)
    start = 0.0
    for i, part in enumerate(words):
        # The first steps allocate memory.
        if i == 3:
            start = time.perf_counter()
        logits, hidden = network(part[:-1], hidden)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), part[1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP)
        optimizer.step()
    return (time.perf_counter() - start) / n_steps * 1e3


def step_latens(program: str, text: Path, vocab: Path, threads: int, epochs: int, n_steps: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.jsonl")
        flags = ["--vocab", vocab, "--epochs", str(epochs), "--threads", str(threads), "--quiet", "--log", log]
        subprocess.run([program, "train", "rnn", text, *flags, "-o", Path(folder, "m.rnn")], check=True)
        seconds = [json.loads(line)["seconds_per_epoch"] for line in log.read_text().splitlines()]
    # The first epoch allocates memory.
    return statistics.median(seconds[1:]) / n_steps * 1e3


if __name__ == "__main__":
    main()
