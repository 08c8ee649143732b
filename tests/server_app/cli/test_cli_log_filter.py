# SPDX-License-Identifier: Apache-2.0
"""The readable log: what goes, what stays, and what is shown once."""

import pytest

from server_app.cli.launch.log_filter import LogFilter

NOISE = """\
Using SuperLink: permsplit (127.0.0.1:39083)
Successfully started run 516525698319740698
\x1b[92mINFO \x1b[0m:      Starting logstream for run_id `516525698319740698`
\x1b[92mINFO \x1b[0m:      Starting Flower Simulation
\x1b[93mWARNING \x1b[0m:   Since flwr 1.32, default simulated SuperNodes changed from 10 to 2.
\x1b[92mINFO \x1b[0m:      Federation `@none/default` (3 simulated SuperNodes)
\x1b[92mINFO \x1b[0m:      To change federation size, use the following command:
\x1b[92mINFO \x1b[0m:      \tflwr federation simulation-config @none/default <superlink> ...
Successfully installed toy to /tmp/home/apps/permsplit.toy.0.1.0.cfeda223.
/v/site-packages/ray/_private/worker.py:2051: FutureWarning: Tip: In future versions of Ray ...
  warnings.warn(
2026-11-30 22:53:41,110\tINFO worker.py:2012 -- Started a local Ray instance.
\x1b[33m(raylet)\x1b[0m [2026-11-30 23:10:18,505 I 12658 12658] logging.cc:303: Set ray log level
\x1b[36m(ClientAppActor pid=12658)\x1b[0m \x1b[93mWARNING \x1b[0m:   Manually terminating ClientAppActor
\x1b[92mINFO \x1b[0m:      """  # noqa: E501

CLIENT_ERROR = """\
\x1b[91mERROR \x1b[0m:     An exception was raised when processing a message by RayBackend
\x1b[91mERROR \x1b[0m:     \x1b[36mray::ClientAppActor.run()\x1b[39m (pid={pid}, ip=10.0.0.2, actor_id={pid}abc, repr=<flwr.ClientAppActor object at 0x7fbc{pid}>)
                  ^^^^^^^^^^^^^^^
  File "/app/client.py", line 9, in train
    raise ValueError("no luck")
ValueError: no luck
\x1b[91mERROR \x1b[0m:     Traceback (most recent call last):
  File "/v/vce_api.py", line 132, in worker
    raise value.as_instanceof_cause()
ray.exceptions.RayTaskError(ClientAppException): \x1b[36mray::ClientAppActor.run()\x1b[39m (pid={pid}, ip=10.0.0.2, actor_id={pid}abc, repr=<flwr.ClientAppActor object at 0x7fbc{pid}>)
                  ^^^^^^^^^^^^^^^
  File "/app/client.py", line 9, in train
    raise ValueError("no luck")
ValueError: no luck

"""  # noqa: E501


def readable(text: str) -> list[str]:
    log = LogFilter()
    lines = [line for raw in text.splitlines(keepends=True) for line in log.feed(raw)]
    return [str(line) for line in [*lines, *log.flush()]]


def test_nothing_of_the_noise_is_left() -> None:
    assert readable(NOISE) == []


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[92mINFO \x1b[0m:      round 1/6 done", "round 1/6 done"),
        ("\x1b[92mINFO \x1b[0m:        indented", "  indented"),
        ("\x1b[93mWARNING \x1b[0m:   low memory", "WARNING: low memory"),
        ("INFO 2026-11-30 22:53:38,123:      with time", "with time"),
        ("plain print", "plain print"),
        ("  50%|bar|\r 100%|bar|", " 100%|bar|"),
        ("\x1b[36m(ClientAppActor pid=7, ip=10.0.0.2)\x1b[0m hello", "[client 7] hello"),
        ("\x1b[36m(TrunkActor pid=8)\x1b[0m WARNING :   nan", "[TrunkActor 8] WARNING: nan"),
        (
            "\x1b[33m(raylet)\x1b[0m 1 Workers killed due to OOM",
            "[raylet] 1 Workers killed due to OOM",
        ),
        (
            "hi [repeated 2x across cluster] (Ray deduplicates logs by default. Set ... )",
            "hi [repeated 2x across cluster]",
        ),
        ("/app/x.py:3: UserWarning: odd", "WARNING: /app/x.py:3: UserWarning: odd"),
        ("(a) parenthesis", "(a) parenthesis"),
        ("[2026-11-30 23:10:18,505 E 1 2] core.cc:3: lost", "ERROR: core.cc:3: lost"),
    ],
)
def test_lines_that_stay(raw: str, shown: str) -> None:
    assert readable(raw + "\n") == [shown]


def test_an_error_of_two_clients_in_two_layers_is_shown_once() -> None:
    text = CLIENT_ERROR.format(pid=11) + CLIENT_ERROR.format(pid=22)
    assert readable(text) == [
        "ERROR: Traceback of client 11 (run):",
        '  File "/app/client.py", line 9, in train',
        '    raise ValueError("no luck")',
        "ValueError: no luck",
    ]


def test_different_errors_are_all_shown_in_full() -> None:
    text = CLIENT_ERROR.format(pid=11) + CLIENT_ERROR.format(pid=22).replace("luck", "memory")
    shown = readable(text)
    assert shown.count("ValueError: no luck") == 1
    assert shown.count("ValueError: no memory") == 1


def test_the_servers_traceback_is_whole_and_what_follows_is_not_lost() -> None:
    text = (
        "ERROR :     Simulation raised an exception\n"
        "Traceback (most recent call last):\n"
        '  File "/app/server.py", line 30, in main\n'
        "\n"
        "ValueError: the server meant to fail\n"
        "INFO :      after\n"
        "ERROR :     Exit Code: 700\n\n"
        "An unhandled exception occurred when running the simulation.\n\n"
        "For more information, visit: <https://flower.ai/docs/700.html>\n"
    )
    assert readable(text) == [
        "ERROR: Simulation raised an exception",
        "Traceback (most recent call last):",
        '  File "/app/server.py", line 30, in main',
        "",
        "ValueError: the server meant to fail",
        "after",
    ]


def test_the_box_around_flowers_own_errors_goes() -> None:
    text = "╭─ Error ────╮\n│ Not an app │\n│            │\n╰────────────╯\n"
    assert readable(text) == ["ERROR: Flower says:", "Not an app", "", ""]


def test_a_pause_does_not_hold_an_error_back() -> None:
    log = LogFilter()
    assert log.feed("ERROR :     first half\n") == []
    assert [str(line) for line in log.flush()] == ["ERROR: first half"]
    assert [str(line) for line in log.feed("second half\n")] == ["second half"]
    assert log.errors == 1
