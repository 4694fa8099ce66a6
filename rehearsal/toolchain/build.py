"""Builds several programs at the same time."""

from __future__ import annotations

import time

from rehearsal.processes import heartbeat
from rehearsal.toolchain import go
from rehearsal.toolchain.go import Report, ToolchainError
from rehearsal.toolchain.programs import FOLDER, Program, own_go

AT_ONCE = 2
"""Programs that are built at the same time: a linker uses one core. Each takes up to 3 GB of memory."""
LOOK_SECONDS = 0.05


def side_by_side(programs: list[Program], report: Report) -> None:
    """Build these. Programs of one module are built one after the other, because the next one finds their
    packages compiled. ToolchainError where one cannot be built; the others are stopped then."""
    count = len(programs)
    waiting = [
        Build(program, f"{program.name} {number}/{count}", report)
        for number, program in enumerate(programs, 1)
    ]
    running: list[Build] = []
    with heartbeat(lambda _: _show([*running], report)):
        try:
            while waiting or running:
                busy = {build.program.folder for build in running}
                free = [build for build in waiting if build.program.folder not in busy]
                if free and len(running) < AT_ONCE:
                    waiting.remove(free[0])
                    free[0].start()
                    running.append(free[0])
                for build in [build for build in running if build.ended]:
                    running.remove(build)
                    build.finish()
                time.sleep(LOOK_SECONDS)
        finally:
            for build in running:
                build.stop()


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


class Build:
    """One program, from the start of the compiler to the executable."""

    def __init__(self, program: Program, label: str, report: Report) -> None:
        self.program, self._label, self._report = program, label, report
        self._partial = program.built.with_suffix(".partial")
        self._log = program.built.with_suffix(".log")

    def start(self) -> None:
        program = self.program
        program.built.parent.mkdir(parents=True, exist_ok=True)
        self._report(f"building {self._label} …")
        self._began = time.monotonic()
        go_build = [go.executable(self._report), "build", *program.flags]
        self._compiler = go.begin(
            [*go_build, "-o", str(self._partial), program.package],
            cwd=FOLDER / program.folder,
            log=self._log,
        )

    @property
    def progress(self) -> str:
        return f"{self._label} … {duration(time.monotonic() - self._began)}"

    @property
    def ended(self) -> bool:
        return self._compiler.poll() is not None

    def finish(self) -> None:
        """ToolchainError with the end of the compiler's output where it failed."""
        if self._compiler.returncode:
            newer = own_go(self.program.folder)
            by = f" with {newer}, which Go downloads from the Go module proxy" if newer else ""
            raise ToolchainError(
                f"{self.program.name} could not be built{by} (all of it: {self._log}):\n{go.tail(self._log)}"
            )
        self._partial.replace(self.program.built)
        self._report(f"built {self._label} in {duration(time.monotonic() - self._began)}")

    def stop(self) -> None:
        self._compiler.kill()
        self._compiler.wait()


def _show(running: list[Build], report: Report) -> None:
    if running:
        report("building " + ", ".join(build.progress for build in running))
