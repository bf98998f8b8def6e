"""The commands with standard streams that are closed, full, narrow, or shared with their results."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAMS = {
    "metrimax": "metrimax.cli",
    "svm_perf_learn": "metrimax.compat.svm_perf_learn",
    "svm_perf_classify": "metrimax.compat.svm_perf_classify",
}

pty = pytest.importorskip("pty", reason="needs a POSIX system")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("trained")
    rows = "".join(f"{1 if k % 3 else -1} 1:{k % 3}.{k} 2:1\n" for k in range(30))
    (made / "1.svm").write_text(rows)
    assert shell("metrimax", f"train {made}/1.svm {made}/ours -q > /dev/null").returncode == 0
    assert shell("svm_perf_learn", f"-v 0 -c 1 {made}/1.svm {made}/theirs").returncode == 0
    return made


@pytest.fixture
def folder(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shell(program: str, rest: str, before: str = "true", **environment: str) -> subprocess.CompletedProcess[str]:
    """A command as the shell runs it; the exit code is its own, not that of what it is piped into."""
    call = f"{sys.executable} -c 'from {PROGRAMS[program]} import main; raise SystemExit(main())' {rest}"
    command = ["bash", "-c", f"{before}; {call}; exit ${{PIPESTATUS[0]}}"]
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=buffered | environment)


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("metrimax", "--help"),
        ("metrimax", "measures"),
        ("metrimax", "predict 1.svm ours"),
        ("metrimax", "train 1.svm m"),
        ("svm_perf_learn", "-?"),
        ("svm_perf_learn", "-c 1 1.svm m"),
        ("svm_perf_classify", "1.svm theirs out"),
    ],
)
def test_standard_output_is_closed(folder: Path, program: str, arguments: str) -> None:
    done = shell(program, f"{arguments} >&-")
    assert done.stderr.endswith(": Bad file descriptor\n")
    assert done.stderr.count("\n") == 1
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("program", "arguments", "code"),
    [
        ("metrimax", "train 1.svm m", 0),
        ("metrimax", "tune 1.svm m --grid 1,2 --folds 2", 0),
        ("metrimax", "train none.svm m", 1),
        ("metrimax", "train 1.svm m --tol 0", 2),
        ("svm_perf_learn", "-c 1 1.svm m", 0),
        ("svm_perf_learn", "1.svm m", 1),
    ],
)
def test_standard_error_is_closed(folder: Path, program: str, arguments: str, code: int) -> None:
    assert shell(program, f"{arguments} 2>&-").returncode == code
    assert (folder / "m").exists() == (code == 0)


@pytest.mark.parametrize(
    ("program", "arguments"), [("metrimax", "train - m"), ("metrimax", "convert - d"), ("svm_perf_learn", "-c 1 - m")]
)
def test_standard_input_is_closed(folder: Path, program: str, arguments: str) -> None:
    done = shell(program, f"{arguments} <&-")
    assert done.stderr.endswith(": -: standard input is closed: give a file, or data to read there\n")
    assert done.stderr.count("\n") == 1
    assert done.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", ["--help", "--version", "train --help"])
def test_help_that_cannot_be_written(arguments: str) -> None:
    done = shell("metrimax", f"{arguments} > /dev/full")
    assert (done.stderr, done.returncode) == ("metrimax: No space left on device\n", 1)
    done = shell("metrimax", f"{arguments} | true")
    assert done.stderr == ""


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("name", "arguments"), [("metrimax predict", "big.svm ours"), ("svm_perf_classify", "-v 0 big.svm theirs -")]
)
def test_a_disk_without_room_for_all_of_the_output(folder: Path, name: str, arguments: str, unbuffered: str) -> None:
    """What is cut off is not taken for all, even where Python writes without a buffer (as containers have it)."""
    (folder / "big.svm").write_text((folder / "1.svm").read_text() * 1000)
    program, *command = name.split()
    done = shell(program, f"{' '.join(command)} {arguments} > out", before="ulimit -f 4", PYTHONUNBUFFERED=unbuffered)
    assert (done.stderr, done.returncode) == (f"{name}: File too large\n", 1)
    assert (folder / "out").stat().st_size == 4096


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout")
@pytest.mark.parametrize(
    ("program", "arguments"), [("metrimax", "predict 1.svm ours -o"), ("svm_perf_classify", "-v 0 1.svm theirs")]
)
def test_output_to_dev_stdout(folder: Path, program: str, arguments: str) -> None:
    """In a pipe, and behind what a file held before."""
    plain = shell(program, f"{arguments} -").stdout
    assert plain.count("\n") >= 30
    for name in ("/dev/stdout", "/dev/fd/1"):
        done = shell(program, f"{arguments} {name}")
        assert (done.stdout, done.stderr, done.returncode) == (plain, "", 0)
    for name in ("/dev/stdout", "/dev/fd/1"):
        (folder / "all").write_text("kept\n")
        assert shell(program, f"{arguments} {name} >> all").returncode == 0
        assert (folder / "all").read_text() == "kept\n" + plain


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout")
@pytest.mark.parametrize("command", ["train", "tune --grid 1,2 --folds 2"])
@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1"])
def test_a_model_to_standard_output(folder: Path, command: str, name: str) -> None:
    """Nothing else is there: the results are on standard error, and the model can be read."""
    done = shell("metrimax", f"{command} 1.svm {name} -q --json > m")
    assert done.returncode == 0
    assert json.loads(done.stderr)["model"] == name
    assert shell("metrimax", "predict 1.svm m").stdout.count("\n") == 30


def test_labels_that_the_terminal_cannot_show(folder: Path) -> None:
    (folder / "t.csv").write_text("a,label\n1,да\n2,нет\n", encoding="utf-8")
    done = shell("metrimax", "train t.csv m --no-scaling", PYTHONIOENCODING="latin-1")
    assert (done.stderr, done.returncode) == ("", 0)
    assert r"\u0434\u0430" in done.stdout


def test_progress_stays_on_its_line(folder: Path) -> None:
    """On a terminal of 50 columns, where a longer line would leave one behind with every change."""
    import fcntl
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
    done = subprocess.run(
        [sys.executable, "-c", "from metrimax.cli import main; main()", "train", "1.svm", "m", "--tol", "1e-9"],
        stdout=subprocess.DEVNULL,
        stderr=slave,
        timeout=60,
    )
    shown = os.read(master, 100_000).decode()
    os.close(slave)
    os.close(master)
    assert done.returncode == 0
    lines = shown.split("\r\x1b[K")
    assert any(line.startswith("training for f1: iteration 1, gap ") for line in lines)
    assert max(map(len, lines)) == 49


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_ended_leaves_nothing_half_written(end, tmp_path):
    # as from a terminal: who runs the tests in the background may have these signals ignored
    usual = "import signal as s; s.signal(s.SIGINT, s.default_int_handler); "
    usual += "[s.signal(end, s.SIG_DFL) for end in (s.SIGTERM, s.SIGHUP)]; "
    program = [sys.executable, "-c", usual + "from metrimax.cli import main; raise SystemExit(main())"]
    command = [*program, "convert", "-", "shards", "--shard-size", "1kB"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdin is not None
        process.stdin.write(b"1 1:2\n" * 1000)
        process.stdin.flush()
        while not any(tmp_path.glob(".shards.*/*")):  # it has begun to write, and waits for more rows
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(end)
        assert process.wait(timeout=60) == 128 + end
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("metrimax", "predict 1.svm ours -o out"),
        ("svm_perf_learn", "-v 0 -c 1 1.svm out"),
        ("svm_perf_classify", "-v 0 1.svm theirs out"),
    ],
)
def test_a_command_that_is_ended_while_it_writes(
    folder: Path, program: str, arguments: str, end: signal.Signals
) -> None:
    """What it has written beside the file goes, for these programs alike."""
    before = sorted(path.name for path in folder.iterdir())
    usual = "import os, signal as s, time; s.signal(s.SIGINT, s.default_int_handler); "
    usual += "[s.signal(end, s.SIG_DFL) for end in (s.SIGTERM, s.SIGHUP)]; "
    usual += "os.replace = lambda *_: (print('writes', flush=True), time.sleep(60)); "
    code = f"{usual}from {PROGRAMS[program]} import main; raise SystemExit(main())"
    with subprocess.Popen([sys.executable, "-c", code, *arguments.split()], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writes\n"
        assert len(list(folder.glob(".out.*"))) == 1
        process.send_signal(end)
        assert process.wait(timeout=60) == 128 + end
    assert sorted(path.name for path in folder.iterdir()) == before
