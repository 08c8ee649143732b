# SPDX-License-Identifier: Apache-2.0
"""One run from its start to its end."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import tomli_w
from rich.console import Console

from server_app.cli.launch.display import Display
from server_app.cli.launch.environment import run_environment
from server_app.cli.launch.flower import Flower, federation_config
from server_app.cli.launch.interrupts import Interrupted, Interrupts
from server_app.cli.launch.log_filter import LogFilter
from server_app.cli.launch.outcome import Outcome, judge, mark_unfinished
from server_app.cli.launch.progress import read_progress
from server_app.cli.launch.stream import LogStream
from server_app.cli.launch.superlink import SuperLink, SuperLinkError
from server_app.cli.plan import RunPlan
from server_app.cli.scratch import short_folder

_PAUSE = 1.0


def launch(plan: RunPlan, console: Console) -> Outcome:
    """Run ``plan`` and wait for its end; no process, port or temporary folder is left.

    Parameters
    ----------
    plan : RunPlan
        What to run.
    console : Console
        Where the log and the progress go.

    Returns
    -------
    Outcome
    """
    home = _new_home(plan)
    log = home / "run.log"
    try:
        with Interrupts() as interrupts:
            outcome = _Launch(plan, home, log, console).run(interrupts)
    finally:
        kept = _keep_log(log, home, plan)
        shutil.rmtree(home, ignore_errors=True)
    mark_unfinished(plan.folder, outcome)
    if outcome.exit_code and kept:
        console.print(f"The full log is in {kept}", highlight=False, soft_wrap=True)
    return outcome


class _Launch:
    """The state of one launch."""

    def __init__(self, plan: RunPlan, home: Path, log: Path, console: Console) -> None:
        self._plan = plan
        self._home = home
        self._log = log
        self._env = run_environment(
            os.environ, home=home, config=plan.config, ray_address=plan.ray_address
        )
        self._flower = Flower(home, self._env)
        self._superlink = SuperLink(home, self._env)
        self._display = Display(console)
        self._filter = LogFilter()
        self._stream = LogStream()
        self._begun = time.time()

    def run(self, interrupts: Interrupts) -> Outcome:
        """Start everything, follow the log, judge the end."""
        with self._display:
            try:
                self._superlink.start()
                return self._run()
            except SuperLinkError as error:
                self._display.say(str(error), style="red")
                return Outcome(exit_code=1, error=str(error).partition(";")[0])
            except Interrupted as interrupt:
                name = signal.Signals(interrupt.number).name
                return Outcome(exit_code=128 + interrupt.number, error=f"stopped by {name}")
            finally:
                with interrupts.shield():
                    self._superlink.stop()

    def _run(self) -> Outcome:
        try:
            return self._follow(self._submit())
        except Interrupted:
            self._display.say("Stopping the run; once more kills it.", style="yellow")
            self._stop()
            raise

    def _submit(self) -> subprocess.Popen[str]:
        run_config = self._home / "run-config.toml"
        values = self._plan.config.model_dump(by_alias=True)
        run_config.write_text(tomli_w.dumps(values), encoding="utf-8")
        plan = self._plan
        federation = federation_config(plan.clients, plan.client_cpus, plan.client_gpus)
        return self._flower.submit(plan.app, run_config, federation)

    def _follow(self, process: subprocess.Popen[str]) -> Outcome:
        """Show the log until Flower says that the run is over."""
        self._show(process)
        while (run := self._flower.run()) is not None and not run.over:
            self._show(self._flower.follow(run.run_id))  # the stream broke off
        if not self._superlink.alive:
            raise SuperLinkError(self._superlink.describe_end())
        outcome = judge(run, self._plan.folder)
        if outcome.exit_code and not self._filter.errors:
            self._display.say(outcome.error, style="red")
        return outcome

    def _show(self, process: subprocess.Popen[str]) -> None:
        last = time.monotonic()
        with process, self._log.open("a", encoding="utf-8") as log:
            try:
                for line in self._stream.lines(process):
                    self._show_progress()
                    if line:
                        last = time.monotonic()
                        log.write(line)
                        self._display.lines(self._filter.feed(line))
                    elif time.monotonic() - last > _PAUSE:
                        self._display.lines(self._filter.flush())
                    if not self._superlink.alive:
                        raise SuperLinkError(self._superlink.describe_end())
            finally:
                process.kill()
                self._display.lines(self._filter.flush())

    def _show_progress(self) -> None:
        path = self._plan.folder / "progress.json"
        self._display.progress(read_progress(path, since=self._begun))

    def _stop(self) -> None:
        run = self._flower.run()
        if run is not None and not run.over:
            self._flower.stop(run.run_id)


def _new_home(plan: RunPlan) -> Path:
    """A folder for Flower's and Ray's files of this run.

    The bundle is unpacked there, so the nodes of a cluster must see it: then it lies beside the
    runs, which are on a shared disk there.
    """
    if plan.ray_address:
        parent = Path(plan.config.runs_dir)
        parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{plan.config.run_name}-", dir=parent))
    return short_folder()


def _keep_log(log: Path, home: Path, plan: RunPlan) -> Path | None:
    """Put the unfiltered log with the run, or beside its place if there is no run folder."""
    if not log.is_file():
        return None
    beside = plan.folder.parent / f"{plan.folder.name}.log"
    target = plan.folder / "log.txt" if plan.folder.is_dir() else beside
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("a", encoding="utf-8") as file:
        for source in (log, home / "superlink.log"):
            if source.is_file():
                file.write(f"---- {source.stem}\n{source.read_text(errors='replace')}")
    return target
