"""Fitting to shards with local processes, and with Ray where it is installed."""

import functools
import os
import signal
import threading
import time
from typing import NamedTuple

import pytest

import latens
from latens import processes


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Five files with sentences."""
    folder = tmp_path_factory.mktemp("texts")
    lines = latens._latens.embedded_text("train").splitlines()[:150]
    files = []
    for i in range(5):
        path = folder / f"{i}.txt"
        path.write_text("\n".join(lines[30 * i : 30 * (i + 1)]) + "\n")
        files.append(path)
    return files


def estimators():
    """One estimator of each kind that is learned from shards."""
    em = {"parameterization": "scalar", "n_states": 8, "n_clusters": 4, "random_state": 1}
    return {
        "brown": latens.Brown(n_clusters=8, min_count=2),
        "fhmm": latens.Fhmm(n_layers=2, n_states=3, epochs=1, batch_sentences=50, random_state=1),
        "glda": latens.GaussianLda(n_topics=3, n_iterations=4, sampler="parallel", keep_all=True, random_state=1),
        "gradient": latens.Hmm(n_states=8, n_clusters=4, dim=8, epochs=1, batch_tokens=600, random_state=1),
        "hmm": latens.Hmm(epochs=3, min_count=2, **em),
        "lda": latens.Lda(n_topics=4, n_iterations=5, keep_all=True, random_state=1),
        "lds": latens.Lds(dim=4, min_count=2, n_iterations=2),
        "ngram": latens.Ngram(order=3, min_count=2),
        "tagger": latens.Tagger(n_iterations=6),
        "word2vec": latens.Word2Vec(dim=8, epochs=2, random_state=1),
    }


@pytest.fixture(scope="module")
def expected(paths):
    """The bytes of the model of a kind, as one process computes it. Each is computed once."""
    known = {}

    def of(kind):
        if kind not in known:
            known[kind] = model_bytes(fit(kind, paths, processes.Executor(1)))
        return known[kind]

    return of


def tagged(paths):
    """Words, and tags that depend on the word and the one before."""
    sentences = [line.split() for path in paths for line in path.read_text().splitlines()]
    tags = [["ABC"[(len(word) + len(before)) % 3] for word, before in zip(words, ["", *words])] for words in sentences]
    return sentences, tags


def fit(kind, paths, executor, **options):
    """Fits the estimator of a kind."""
    estimator = estimators()[kind]
    if kind == "tagger":
        return estimator.fit(*tagged(paths), executor=executor, **options)
    if kind == "glda":
        estimator.vectors = vectors(tuple(paths))
    return estimator.fit(paths, executor=executor, **options)


@functools.cache
def vectors(paths):
    """Word vectors of the text."""
    return latens.Word2Vec(dim=4, epochs=1, n_jobs=1).fit(list(paths))


def model_bytes(estimator):
    return estimator.model_.to_bytes()


class Remembered(processes.Executor):
    """An executor that tells its workers."""

    def start(self, parts):
        self.workers = super().start(parts)
        return self.workers


def has_ended(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("kind", estimators())
def test_the_number_of_processes_does_not_change_a_model(kind, paths, expected):
    two = fit(kind, paths, processes.Executor(2, threads_per_worker=1))
    assert model_bytes(two) == expected(kind)


def test_shards_give_the_model_of_one_process(paths):
    found = estimators()["ngram"].fit(paths, executor=processes.Executor(2))
    expected = estimators()["ngram"].fit(paths)
    assert found.perplexity(paths) == expected.perplexity(paths)
    found = estimators()["hmm"].fit(paths, executor=processes.Executor(2))
    expected = estimators()["hmm"].fit(paths)
    assert found.perplexity(paths) == pytest.approx(expected.perplexity(paths), rel=1e-6)


def test_texts_in_memory_have_shards_that_do_not_depend_on_the_workers(paths):
    lines = [line for path in paths for line in path.read_text().splitlines()]
    fits = [estimators()["hmm"].fit(lines, executor=processes.Executor(n)) for n in (1, 2)]
    assert fits[0].facts_["shards"] == 16
    assert model_bytes(fits[0]) == model_bytes(fits[1])


class Killed(processes._Process):
    """A process that is killed while it has a job: shard 2 of a round, the sum of its shards, or a merge."""

    steps: "list[tuple[str, int] | str]" = []
    n_killed = 0

    def ask(self, job):
        if "shard" in job:
            step = (job["stage"], int(job["next_carry"].split(".")[-2])) if job["shard"] == 1 else None
        else:
            step = "merge" if "merge" in job else "total"
        if step not in Killed.steps:
            return super().ask(job)
        Killed.steps.remove(step)
        Killed.n_killed += 1
        # It wakes up with the job in its pipe, and dies at once.
        os.kill(self.process.pid, signal.SIGSTOP)

        def kill():
            time.sleep(0.02)
            os.kill(self.process.pid, signal.SIGCONT)
            os.kill(self.process.pid, signal.SIGKILL)

        threading.Thread(target=kill).start()
        return super().ask(job)


@pytest.mark.parametrize("kind", estimators())
def test_killed_processes_are_replaced_and_the_model_stays_the_same(kind, paths, expected, monkeypatch, caplog):
    monkeypatch.setattr(processes, "_Process", Killed)
    # A tagger has no vocabulary. Rounds are counted from 1.
    first = [] if kind == "tagger" else [("vocab", 1)]
    Killed.steps = [*first, ("model", len(first) + 1), ("model", len(first) + 2), "total", "merge"]
    Killed.n_killed = 0
    executor = Remembered(2)
    found = fit(kind, paths, executor)
    # Some models learn in a single round.
    assert Killed.n_killed == 5 - (kind == "tagger") - (kind in ("brown", "lds", "ngram"))
    assert sum("died (exit status -9)" in message for message in caplog.messages) == Killed.n_killed
    assert model_bytes(found) == expected(kind)
    assert all(has_ended(pid) for pid in executor.workers.pids())


@pytest.mark.parametrize("kind", ["hmm", "lda", "tagger"])
def test_a_process_that_is_killed_at_any_time_is_replaced(kind, paths, expected):
    executor, killed, stop = Remembered(2), [], threading.Event()

    def kill():
        # At most two deaths of each process, however the system schedules them.
        while not stop.wait(0.15) and len(killed) < 4:
            pid = executor.workers.pids()[len(killed) % 2]
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    def callback(facts):
        if facts["phase"] == "learn" and facts["done"] == 1:
            threading.Thread(target=kill).start()

    try:
        found = fit(kind, paths, executor, callback=callback)
    finally:
        stop.set()
    assert model_bytes(found) == expected(kind)


def test_a_missing_file_is_an_error_that_names_the_shard_and_ends_all_processes(paths, tmp_path):
    executor = Remembered(2)
    broken = [*paths[:3], tmp_path / "none.txt"]
    with pytest.raises(OSError, match=r"shard 4 of 4: cannot read its text.*none\.txt.*worker 1, process"):
        estimators()["hmm"].fit(broken, executor=executor)
    assert all(has_ended(pid) for pid in executor.workers.pids())
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(ValueError, match="shard 1 of 2.*is empty"):
        estimators()["hmm"].fit([tmp_path / "empty.txt", paths[0]], executor=processes.Executor(2))


class Mistaken(processes._Process):
    """A process that gets another broadcast than the others for shard 4."""

    stage_round = ("model", 0)
    broadcast = ""

    def ask(self, job):
        if job.get("shard") == 3 and job["next_carry"].endswith(f".{Mistaken.stage_round[1]}.3"):
            job = {**job, "broadcast": Mistaken.broadcast}
        return super().ask(job)


def broadcasts(estimator, paths):
    """The broadcasts of the rounds of a model."""
    sent = []

    class Told(processes.Executor):
        def start(self, parts):
            workers = super().start(parts)
            of_workers = workers.round

            def round(broadcast, stage, told):
                sent.append((stage, broadcast.copy()))
                return of_workers(broadcast, stage, told)

            workers.round = round
            return workers

    estimator.fit(paths, executor=Told(1))
    return [broadcast for stage, broadcast in sent if stage == "model"]


def test_a_shard_with_another_broadcast_is_an_error_that_names_the_worker(paths, tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "_Process", Mistaken)
    Mistaken.broadcast = str(tmp_path / "other")
    Mistaken.stage_round = ("model", 0)
    em = {"parameterization": "scalar", "n_states": 8, "n_clusters": 4}
    other = broadcasts(latens.Hmm(epochs=3, min_count=1, random_state=1, **em), paths)
    own = broadcasts(latens.Hmm(epochs=3, min_count=2, random_state=2, **em), paths)
    # The first round of a model is the second one of the workers.
    for number, broadcast in [(2, other[0]), (3, own[1]), (4, own[1])]:
        broadcast.tofile(Mistaken.broadcast)
        Mistaken.stage_round = ("model", number)
        executor = Remembered(2)
        with pytest.raises(ValueError, match=r"shard 4 of 5: .*another version of the broadcast \(worker 1, process \d+\)"):
            estimators()["hmm"].fit(paths, executor=executor)
        assert all(has_ended(pid) for pid in executor.workers.pids())


def test_workers_without_memory_are_an_error_that_names_the_shard(paths, monkeypatch):
    resource = pytest.importorskip("resource")

    def limited():
        # The broadcast has 36 million transitions.
        resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))

    class Popen(processes.subprocess.Popen):
        def __init__(self, *args, **options):
            # Thread pools of numerical libraries reserve memory for every thread.
            options["env"] = {**options["env"], "OPENBLAS_NUM_THREADS": "1"}
            super().__init__(*args, preexec_fn=limited, **options)

    executor = Remembered(2, threads_per_worker=1)
    monkeypatch.setattr(processes.subprocess, "Popen", Popen)
    hmm = latens.Hmm(n_states=6000, constraint="none", parameterization="scalar", epochs=2, random_state=1)
    with pytest.raises((OSError, RuntimeError), match=r"shard \d of 2: .*memory.*worker \d|shard \d of 2: .*worker \d.*memory"):
        hmm.fit(paths[:2], executor=executor)
    assert all(has_ended(pid) for pid in executor.workers.pids())


def test_a_process_that_always_dies_is_an_error(paths):
    # A worker without memory dies like this.
    executor = Remembered(2)

    def callback(facts):
        if facts["phase"] == "learn" and facts["done"] == 1:
            stop = time.monotonic() + 20
            worker = executor.workers

            def kill():
                while time.monotonic() < stop and not worker._closed:
                    pid = worker.pids()[0]
                    if not has_ended(pid):
                        os.kill(pid, signal.SIGKILL)
                    time.sleep(0.005)

            threading.Thread(target=kill, daemon=True).start()

    with pytest.raises(RuntimeError, match=r"shard \d of 5: its process died 3 times .*memory"):
        estimators()["hmm"].fit(paths, executor=executor, callback=callback)
    assert all(has_ended(pid) for pid in executor.workers.pids())


def test_a_run_resumes_from_its_checkpoint_with_the_same_model(paths, expected, tmp_path, monkeypatch):
    from latens import _shards

    monkeypatch.setattr(_shards, "CHECKPOINT_SECONDS", 0.0)
    checkpoint = tmp_path / "run.checkpoint"

    def stop(facts):
        if facts["phase"] == "learn" and facts["done"] == 4:
            raise InterruptedError

    for kind in ("hmm", "lda"):
        with pytest.raises(InterruptedError):
            estimators()[kind].fit(
                paths, executor=processes.Executor(2), checkpoint=checkpoint,
                callback=lambda facts: stop({**facts, "done": facts["done"] + (kind == "hmm")}),
            )
        found = estimators()[kind].fit(paths, executor=processes.Executor(1), checkpoint=checkpoint, resume=True)
        assert model_bytes(found) == expected(kind)
    with pytest.raises(ValueError, match="belongs to other parameters"):
        estimators()["hmm"].fit(paths, executor=processes.Executor(1), checkpoint=checkpoint, resume=True)


def test_what_shards_cannot_do_is_an_error(paths):
    executor = processes.Executor(1)
    with pytest.raises(ValueError, match="`valid` cannot be used"):
        latens.Hmm().fit(paths, valid=paths, executor=executor)
    with pytest.raises(ValueError, match="keep_all"):
        latens.Lda().fit(paths, executor=executor)
    with pytest.raises(ValueError, match="`rnn` cannot be trained from shards"):
        latens.Rnn().fit(paths, executor=executor)
    with pytest.raises(ValueError, match="sampler"):
        latens.Lda(sampler="sparse", keep_all=True).fit(paths, executor=executor)


@pytest.fixture(scope="module")
def ray():
    """A local Ray of two workers, for all tests of this module."""
    if os.environ.get("LATENS_TEST_RAY") == "0":
        pytest.skip("LATENS_TEST_RAY is 0")
    module = pytest.importorskip("ray", reason="Ray is not installed")
    try:
        module.init(
            num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error", object_store_memory=200 << 20
        )
    except Exception as error:
        # It starts servers, which some machines do not allow.
        pytest.skip(f"Ray cannot be started here: {error}")
    yield module
    module.shutdown()


def own_actors():
    """The states of our actors; datasets of Ray have others. The public interface to them needs the dashboard."""
    from ray._private import state

    return [actor for actor in state.actors().values() if actor["ActorClassName"] == "_Worker"]


def no_actor_is_left():
    """Whether all our actors have ended."""
    stop = time.monotonic() + 20
    while time.monotonic() < stop:
        actors = own_actors()
        if actors and all(actor["State"] == "DEAD" for actor in actors):
            return True
        time.sleep(0.2)
    return False


def test_ray_gives_the_model_of_local_processes(ray, paths, expected):
    for kind in ("hmm", "lda", "ngram"):
        found = latens.ray.fit(estimators()[kind], paths, num_workers=2)
        assert model_bytes(found) == expected(kind)
    assert no_actor_is_left()


@pytest.mark.parametrize("kind", ["hmm", "lda", "tagger", "word2vec"])
def test_a_killed_ray_actor_is_replaced_and_the_model_stays_the_same(ray, kind, paths, expected):
    class RememberedActors(latens.ray.Executor):
        def start(self, parts):
            self.workers = super().start(parts)
            return self.workers

    executor, killed = RememberedActors(2), []

    def callback(facts):
        if facts["phase"] == "learn" and facts["done"] == (0 if kind == "word2vec" else 2) and not killed:
            killed.append(ray.get(executor.workers._actors[0].pid.remote()))
            threading.Timer(0.02, os.kill, (killed[0], signal.SIGKILL)).start()

    found = fit(kind, paths, executor, callback=callback)
    assert killed and has_ended(killed[0])
    assert model_bytes(found) == expected(kind)


def test_an_error_of_a_ray_worker_names_its_shard_and_leaves_no_actor(ray, paths, tmp_path):
    broken = [*paths[:3], tmp_path / "none.txt"]
    with pytest.raises(OSError, match=r"shard 4 of 4: cannot read its text.*\(worker 1\)"):
        estimators()["hmm"].fit(broken, executor=latens.ray.Executor(2))
    assert no_actor_is_left()


def test_a_dataset_of_ray_is_a_text(ray, paths):
    data = pytest.importorskip("ray.data", reason="ray.data is not installed")
    lines = [line for path in paths for line in path.read_text().splitlines()]
    dataset = data.from_items([{"text": line} for line in lines])
    found = estimators()["ngram"].fit(dataset, executor=latens.ray.Executor(2, n_shards=3))
    expected = estimators()["ngram"].fit(lines)
    assert found.perplexity(paths) == expected.perplexity(paths)
    found = copies().fit(dataset, executor=latens.ray.Executor(2, data_parallel=True))
    assert found.facts_["tokens"] == copies().fit(lines).facts_["tokens"]


class Together(NamedTuple):
    """What copies are fitted to: a text, and sentences to judge them by."""

    lines: list
    valid: list
    alone: latens.Hmm


#: Epochs of `copies` that take much longer than the driver needs to hear of the first.
LONG = 500


def copies(**options):
    params = {"n_states": 12, "n_clusters": 4, "dim": 8, "epochs": 3, "batch_tokens": 300, "random_state": 1}
    return latens.Hmm(**{**params, **options})


@pytest.fixture(scope="module")
def together(paths):
    lines = [line for path in paths for line in path.read_text().splitlines()]
    return Together(lines, lines[:40], copies().fit(lines, valid=lines[:40]))


def same(found, expected):
    """Whether two models differ by rounding at most."""
    return found.emissionprob_ == pytest.approx(expected.emissionprob_, rel=1e-2, abs=1e-5)


def test_ray_actors_learn_one_model_together(ray, paths, together):
    told = []
    executor = latens.ray.Executor(2, data_parallel=True)
    found = copies().fit(together.lines, valid=together.valid, executor=executor, callback=told.append)
    assert same(found, together.alone)
    assert found.facts_["best_epoch"] == together.alone.facts_["best_epoch"]
    assert told and told[-1]["done"] == told[-1]["total"]
    # From files, and with a seed that the driver draws.
    found = copies(random_state=None).fit(paths, executor=executor)
    assert found.facts_["tokens"] == together.alone.facts_["tokens"]
    assert no_actor_is_left()


def test_ray_actors_start_again_after_one_died_and_the_model_stays_the_same(ray, together, caplog):
    killed = []

    def callback(facts):
        if not killed and facts["phase"] == "learn" and facts["done"] > 3:
            assert facts["done"] < facts["total"], "too fast for this test: raise LONG"
            alive = [actor["Pid"] for actor in own_actors() if actor["State"] == "ALIVE"]
            killed.append(alive[-1])
            os.kill(killed[0], signal.SIGKILL)

    executor = latens.ray.Executor(2, data_parallel=True)
    found = copies(epochs=LONG).fit(together.lines, executor=executor, callback=callback)
    assert killed and "start again" in caplog.text
    assert same(found, copies(epochs=LONG).fit(together.lines, executor=executor))
    assert no_actor_is_left()


def test_ray_actors_resume_together_from_the_checkpoint_of_one_process(ray, together, tmp_path):
    def stop(facts):
        if facts["done"] > 10:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        copies().fit(together.lines, valid=together.valid, checkpoint=path, callback=stop)
    executor = latens.ray.Executor(2, data_parallel=True)
    found = copies().fit(
        together.lines, valid=together.valid, checkpoint=path, resume=True, executor=executor
    )
    assert same(found, together.alone)


def test_what_ray_actors_cannot_learn_together_is_an_error(ray, paths, together, tmp_path):
    executor = latens.ray.Executor(2, data_parallel=True)
    with pytest.raises(ValueError, match="needs an `Hmm` that is learned by gradient"):
        latens.Ngram().fit(paths, executor=executor)
    with pytest.raises(ValueError, match="needs an `Hmm` that is learned by gradient"):
        copies(parameterization="scalar").fit(paths, executor=executor)
    with pytest.raises(ValueError, match="`n_states`.*worker"):
        copies(n_states=13).fit(paths, executor=executor)
    with pytest.raises(OSError, match=r"none.txt.*\(worker [01]\)"):
        copies().fit([*paths, tmp_path / "none.txt"], executor=executor)
    with pytest.raises(ValueError, match="needs an `Hmm` that is learned by gradient"):
        latens.Lda(keep_all=True).fit(paths, executor=executor)
    with pytest.raises(ValueError, match="5 workers need 5 CPUs, but the cluster has 2"):
        copies().fit(paths, executor=latens.ray.Executor(5, data_parallel=True))
    with pytest.raises(ValueError, match="2 workers need 2 GPUs, but the cluster has 0"):
        copies(device="cuda").fit(paths, executor=latens.ray.Executor(2))
    with pytest.raises(ValueError, match="latens.ray.Executor"):
        copies(device="cuda").fit(paths, executor=processes.Executor(2))
    assert no_actor_is_left()


def test_ray_actors_write_a_checkpoint_when_they_are_stopped(ray, together, tmp_path):
    path = tmp_path / "checkpoint"

    def stop(facts):
        if facts["phase"] == "learn" and facts["done"] > 10:
            raise KeyboardInterrupt

    executor = latens.ray.Executor(2, data_parallel=True)
    with pytest.raises(KeyboardInterrupt):
        copies(epochs=LONG).fit(together.lines, executor=executor, checkpoint=path, callback=stop)
    found = copies(epochs=LONG).fit(together.lines, executor=executor, checkpoint=path, resume=True)
    assert same(found, copies(epochs=LONG).fit(together.lines, executor=executor))


def test_ray_actors_read_words_as_they_are(ray, together):
    words = [line.split() for line in together.lines]
    words[0][0] = "New York"
    executor = latens.ray.Executor(2, data_parallel=True)
    assert "New York" in copies(min_count=1).fit(words, executor=executor).vocabulary_
