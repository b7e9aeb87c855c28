# SPDX-License-Identifier: Apache-2.0
"""The tools of the platforms whose programs are not made by a project's build.sh, and the options that they take."""
from __future__ import annotations

import json
import pathlib
import shlex
import subprocess
import tarfile
from typing import Any

from .project_api import server

# Boards by the names of the classic stack: what the tool calls them.
ZEPHYR_BOARDS = {name: name for name in ("mps2_an521", "mps3_an547", "nrf5340dk_nrf5340_cpuapp", "nucleo_f746zg", "nucleo_h743zi", "nucleo_l4r5zi", "qemu_cortex_r5", "qemu_riscv32",
                                         "qemu_riscv64", "qemu_x86", "stm32f746g_disco")}
ARDUINO_BOARDS = {"due": "arduino:sam:arduino_due_x_dbg", "feathers2": "esp32:esp32:feathers2", "metrom4": "adafruit:samd:adafruit_metro_m4",
                  "nano33ble": "arduino:mbed_nano:nano33ble", "pybadge": "adafruit:samd:adafruit_pybadge_m4", "spresense": "SPRESENSE:spresense:spresense",
                  "teensy40": "teensy:avr:teensy40", "teensy41": "teensy:avr:teensy41", "wioterminal": "Seeeduino:samd:seeed_wio_terminal"}
_KEPT = "project_options.json"  # what generate_project was told; later steps may say otherwise


def _option(name: str, what: str, methods: list[str], default: Any = None, kind: str = "str", choices: Any = None) -> server.ProjectOption:
    return server.ProjectOption(name, tuple(choices) if choices else None, default, kind, None, methods, what)


def _common(steps: list[str]) -> list[server.ProjectOption]:
    return [_option("verbose", "show what the tools write", steps, False, "bool"),
            _option("project_type", "what the project's program does: it serves a session of this machine", ["generate_project"], "host_driven", choices=("host_driven",)),
            _option("extra_files_tar", "a tar file with more files for the project", ["generate_project"])]


def _is_set(value: Any) -> bool:
    return str(value).lower() in ("1", "true", "yes")


class Tools:
    """A platform that build.sh makes programs for."""

    def __init__(self) -> None:
        self.options = _common(["generate_project", "build", "flash"])

    def check(self, given: dict[str, Any]) -> None:
        """Errors: ServerError."""
        for option in self.options:
            value = given.get(option.name)
            if value is not None and option.choices and value not in option.choices:
                raise server.ServerError(f"{option.name} is {', '.join(option.choices)}, not '{value}'")

    def generated(self, folder: pathlib.Path, given: dict[str, Any]) -> None:
        if extra := given.get("extra_files_tar"):
            with tarfile.open(extra) as tar:
                for member in tar.getmembers():
                    place = (folder / member.name).resolve()
                    if not (member.isfile() or member.isdir()) or not place.is_relative_to(folder.resolve()):
                        raise server.ServerError(f"extra_files_tar holds '{member.name}', which is no file in the project's folder")
                    tar.extract(member, folder)
        (folder / _KEPT).write_text(json.dumps({k: str(v) for k, v in given.items()}))

    def build(self, folder: pathlib.Path, given: dict[str, Any]) -> bool:
        """Whether the tools built it."""
        return False

    def flash(self, folder: pathlib.Path, given: dict[str, Any]) -> None:
        pass

    def port(self, folder: pathlib.Path, given: dict[str, Any]) -> str:
        """The serial line to the board; empty: the program runs here."""
        return ""

    def speed(self, given: dict[str, Any]) -> str:
        return "115200"

    @staticmethod
    def kept(folder: pathlib.Path, given: dict[str, Any]) -> dict[str, Any]:
        try:
            before = json.loads((folder / _KEPT).read_text())
        except (OSError, ValueError):
            before = {}
        return {**before, **given}


class BoardTools(Tools):
    """A platform with a program of its own that builds and flashes."""
    program, where, boards = "", "", ZEPHYR_BOARDS

    def __init__(self) -> None:
        super().__init__()
        self.options += [server.ProjectOption("board", tuple(sorted(self.boards)), None, "str", ["build"], ["generate_project"], "the board"),
                         _option("warning_as_error", "warnings of the compiler are errors", ["generate_project", "build"], False, "bool"),
                         _option("port", "the serial line to the board: /dev/ttyACM0", ["flash", "open_transport"])]

    def command(self, step: str, options: dict[str, Any]) -> list[str]:
        raise NotImplementedError

    def _tool(self, step: str, folder: pathlib.Path, given: dict[str, Any]) -> None:
        options = self.kept(folder, given)
        if not options.get("board"):
            raise server.ServerError(f"the option 'board' says which board it is: {', '.join(sorted(self.boards))}")
        command = self.command(step, options)
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        except FileNotFoundError:
            raise server.ServerError(f"'{command[0]}' is not installed: {self.where}") from None
        if _is_set(options.get("verbose")):
            print(shlex.join(command), done.stdout, done.stderr, sep="\n", flush=True)
        if done.returncode:
            raise server.ServerError(f"'{shlex.join(command)}' ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}")

    def build(self, folder: pathlib.Path, given: dict[str, Any]) -> bool:
        self._tool("build", folder, given)
        return True

    def flash(self, folder: pathlib.Path, given: dict[str, Any]) -> None:
        self._tool("flash", folder, given)

    def port(self, folder: pathlib.Path, given: dict[str, Any]) -> str:
        port = str(self.kept(folder, given).get("port") or "")
        if not port:
            raise server.ServerError("the option 'port' names the serial line to the board: /dev/ttyACM0")
        return port


class Zephyr(BoardTools):
    where = "pip install west, and Zephyr's SDK (https://docs.zephyrproject.org)"

    def __init__(self) -> None:
        super().__init__()
        self.options += [_option("west_cmd", "how west is called", ["build", "flash"], "west"),
                         _option("zephyr_base", "the folder of Zephyr's sources; otherwise $ZEPHYR_BASE", ["build"]),
                         _option("config_main_stack_size", "CONFIG_MAIN_STACK_SIZE of prj.conf", ["generate_project"], kind="int")]

    def generated(self, folder: pathlib.Path, given: dict[str, Any]) -> None:
        super().generated(folder, given)
        lines = [line for line in (folder / "prj.conf").read_text().splitlines() if not ("config_main_stack_size" in given and line.startswith("CONFIG_MAIN_STACK_SIZE="))]
        if "config_main_stack_size" in given:
            lines.append(f"CONFIG_MAIN_STACK_SIZE={int(given['config_main_stack_size'])}")
        if _is_set(given.get("warning_as_error")):
            lines.append("CONFIG_COMPILER_WARNINGS_AS_ERRORS=y")
        (folder / "prj.conf").write_text("\n".join(lines) + "\n")

    def command(self, step: str, options: dict[str, Any]) -> list[str]:
        west = shlex.split(str(options.get("west_cmd") or "west"))
        if step == "flash":
            return [*west, "flash", "--build-dir", "build"]
        base = [f"-DZEPHYR_BASE={options['zephyr_base']}"] if options.get("zephyr_base") else []
        return [*west, "build", "--board", self.boards[options["board"]], "--build-dir", "build", "--pristine", "auto", ".", *(["--", *base] if base else [])]


class Arduino(BoardTools):
    where = "https://arduino.github.io/arduino-cli says how"
    boards = ARDUINO_BOARDS

    def __init__(self) -> None:
        super().__init__()
        self.options += [_option("arduino_cli_cmd", "how arduino-cli is called", ["build", "flash"], "arduino-cli")]

    def command(self, step: str, options: dict[str, Any]) -> list[str]:
        tool = shlex.split(str(options.get("arduino_cli_cmd") or "arduino-cli"))
        board = ["--fqbn", self.boards[options["board"]]]
        if step == "flash":
            return [*tool, "upload", ".", *board, *(["--port", str(options["port"])] if options.get("port") else []), "--input-dir", "build"]
        return [*tool, "compile", ".", *board, "--build-path", "build", *(["--warnings", "all", "--build-property", "compiler.warning_flags=-Werror"] if _is_set(options.get("warning_as_error")) else [])]


def tools_of(platform: str) -> Tools:
    return {"zephyr": Zephyr, "arduino": Arduino}.get(platform, Tools)()


__all__ = ["ARDUINO_BOARDS", "ZEPHYR_BOARDS", "Tools", "tools_of"]
