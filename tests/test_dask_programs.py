"""Dask in programs of their own: clusters they start, and clusters that fail as a whole."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import textwrap

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'metrimax[dask]'")
import dask

from metrimax.designs.dask import DaskDesign
from metrimax.io.writing import ShardWriter

pytestmark = pytest.mark.posix  # they kill processes

SCATTERED = """
    import os, signal
    import numpy as np
    import dask
    from distributed import Client, LocalCluster
    from metrimax.designs.dask import DaskDesign

    def greedy():
        return np.ones((60_000_000, 8))  # 3.8 GB

    if __name__ == "__main__":
        dask.config.set({"distributed.scheduler.allowed-failures": 0, "distributed.comm.timeouts.connect": "3s"})
        with LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50,
            memory_limit="400MB",
        ) as cluster, Client(cluster) as client:
            try:
                DaskDesign([greedy], client=client)
            except RuntimeError as error:
                print("memory:", error)
            client.wait_for_workers(1, timeout=60)
            blocks = client.scatter([np.ones((10, 2)), np.ones((10, 2))])
            design = DaskDesign(blocks, client=client)
            pid = client.submit(os.getpid).result()
            os.kill(pid, signal.SIGKILL)
            try:
                for _ in range(5):
                    design.matvec(np.ones(2))
            except RuntimeError as error:
                print("scattered:", error)
        embedded = DaskDesign([np.ones((4, 2)), np.ones((3, 2))])
        kind = type(embedded.cluster.client.cluster).__name__
        print("embedded:", embedded.matvec(np.ones(2)).tolist() == [2.0] * 7, kind)
        embedded.close()
        print("closed:", embedded.cluster.client.status)
"""

SCHEDULER = """
    import os, signal, subprocess, sys, time
    import numpy as np
    import dask
    from distributed import Client
    from metrimax import MeasureSVC
    from metrimax.designs.dask import DaskDesign

    def block(k):
        return np.random.default_rng(k).normal(size=(500, 4))

    if __name__ == "__main__":
        dask.config.set({"distributed.comm.timeouts.connect": "2s", "distributed.client.heartbeat": "1s"})
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        address = f"tcp://127.0.0.1:{sys.argv[1]}"
        run = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", sys.argv[1], "--no-dashboard"]
        scheduler = subprocess.Popen(run, **quiet)
        run = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-dashboard", "--nworkers", "1"]
        worker = subprocess.Popen([*run, "--death-timeout", "10"], **quiet)
        try:
            for _ in range(20):
                try:
                    client = Client(address, timeout=10)
                    break
                except OSError:
                    time.sleep(0.5)
            client.wait_for_workers(1, timeout=60)
            design = DaskDesign(client.map(block, range(4)), client=client, timeout=20)
            y = np.random.default_rng(0).random(2000) < 0.2

            def kill(record):
                if record.iteration == 3:
                    scheduler.kill()

            try:
                MeasureSVC(tol=1e-9, callback=kill).fit(design, y)
            except ConnectionError as error:
                print("scheduler:", error, flush=True)
        finally:
            scheduler.kill()
            worker.kill()
            os._exit(0)  # the client would go on looking for its scheduler
"""


STOPPED = """
    import os, signal, subprocess, sys, time
    import numpy as np
    import dask
    from distributed import Client
    from metrimax import MeasureSVC
    from metrimax.designs.cluster import NoNews

    def block(k):
        return np.random.default_rng(k).normal(size=(500, 4))

    def under_way(dask_scheduler):
        return "metrimax-pull" in dask_scheduler.task_prefixes

    if __name__ == "__main__":
        port, who, command = sys.argv[1], sys.argv[2], sys.argv[3:]
        dask.config.set({"distributed.comm.timeouts.connect": "2s", "metrimax.timeout": "3s"})
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        address = f"tcp://127.0.0.1:{port}"
        run = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", port, "--no-dashboard"]
        scheduler = subprocess.Popen(run, **quiet)
        run = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-dashboard", "--nworkers", "1"]
        worker = subprocess.Popen([*run, "--no-nanny", "--death-timeout", "20"], **quiet)
        try:
            for _ in range(40):
                try:
                    client = Client(address, timeout=10)
                    break
                except OSError:
                    time.sleep(0.5)
            client.wait_for_workers(1, timeout=60)
            process = scheduler if who == "scheduler" else worker
            if command:
                os.environ["DASK_METRIMAX__TIMEOUT"] = "3"
                os.environ["DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT"] = "2s"
                command = subprocess.Popen(
                    [sys.executable, "-m", "metrimax", *command, "--dask", address], stderr=subprocess.PIPE, text=True
                )
                while not client.run_on_scheduler(under_way):
                    time.sleep(0.05)
                os.kill(process.pid, signal.SIGSTOP)
                _, told = command.communicate(timeout=60)
                print("command:", command.returncode, told.splitlines()[-1], flush=True)
                sys.exit()

            def stop(record):
                if record.iteration == 3:
                    os.kill(process.pid, signal.SIGSTOP)

            y = np.random.default_rng(0).random(2000) < 0.2
            try:
                MeasureSVC(tol=1e-9, callback=stop).fit(client.map(block, range(4)), y)
            except NoNews as error:
                print("python:", error, flush=True)
        finally:
            for one in (scheduler, worker):
                one.kill()
            os._exit(0)  # the client would go on looking for its scheduler
"""


def run_program(program, tmp_path, *arguments):
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, str(file), *arguments], capture_output=True, text=True, timeout=180, env=os.environ
    )
    return done.stdout, done.stderr


def test_out_of_memory_and_scattered_data_and_the_embedded_cluster(tmp_path):
    out, err = run_program(SCATTERED, tmp_path)
    assert "embedded: True LocalCluster\nclosed: closed" in out, err
    assert "memory: metrimax-part-" in out, err
    assert "most likely out of memory" in out
    assert "scattered: partition 0 was lost with its worker and cannot be computed again" in out, err


def test_the_scheduler_goes_away(tmp_path):
    out, err = run_program(SCHEDULER, tmp_path, free_port())
    assert "scheduler: the Dask scheduler has gone away" in out, err


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@pytest.mark.parametrize("who", ["scheduler", "worker"])
def test_a_process_that_is_stopped_ends_the_fit(tmp_path, who):
    """Its connections stay open, so that nothing but time tells."""
    out, err = run_program(STOPPED, tmp_path, free_port(), who)
    silent = "the Dask scheduler does not respond" if who == "scheduler" else "the scheduler knows 1 workers"
    assert "python: no " in out, err
    assert "for 3 seconds" in out
    assert silent in out
    assert "metrimax.timeout" in out


def test_a_process_that_is_stopped_ends_the_command(tmp_path):
    rng = np.random.default_rng(0)
    with ShardWriter(tmp_path / "data", shard_size=20_000) as writer:
        writer.add(rng.normal(size=(3000, 30)), (rng.random(3000) < 0.3).astype(float))
        writer.finish()
    data, model = str(tmp_path / "data"), tmp_path / "model"
    arguments = ["train", data, str(model), "--measure", "roc_area", "-C", "1000", "--tol", "1e-12"]
    out, err = run_program(STOPPED, tmp_path, free_port(), "scheduler", *arguments)
    assert re.search("command: 1 metrimax train: .*for 3 seconds.*the Dask scheduler does not respond", out), (out, err)
    assert not model.exists()


def test_no_scheduler_there():
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(ConnectionError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"),
    ):
        DaskDesign([np.ones((2, 2))], client="tcp://127.0.0.1:9")


def test_the_command_with_a_cluster_of_its_own(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.random(1200) < 0.2
    with ShardWriter(tmp_path / "data", shard_size=20_000) as writer:
        writer.add(rng.normal(size=(1200, 12)) + 0.5 * y[:, None], y.astype(float))
        writer.finish()
    arguments = ["train", str(tmp_path / "data"), str(tmp_path / "model"), "--dask", "local", "--json"]
    program = (
        f"import sys\nfrom metrimax.cli import main\nif __name__ == '__main__':\n    sys.exit(main({arguments!r}))\n"
    )
    out, err = run_program(program, tmp_path)
    assert json.loads(out)["examples"] == 1200, err
