# SPDX-License-Identifier: Apache-2.0
"""`tvmc micro`: projects for devices, and running their models (docs/micro.md)."""
from __future__ import annotations

import argparse
import os
import pathlib
import shutil
from typing import Any

from ...micro import GeneratedProject, Session, TemplateProject, get_microtvm_template_projects
from ...micro.project_api.client import ProjectAPIErrorBase
from ...micro.project_api.server import ServerError
from ...micro.session import create_local_graph_executor
from ...runtime import load_param_dict
from ...runtime.executor import AotModule
from .common import TVMCException

PLATFORMS = ("crt", "mps2-an386", "zephyr", "arduino")


def add_micro_parser(verbs: Any) -> None:
    micro = verbs.add_parser("micro", help="make, build and flash projects for devices")
    actions = micro.add_subparsers(title="subcommands", dest="subcommand", required=True)
    create = actions.add_parser("create-project", aliases=["create"], help="make a project of a Model Library Format")
    create.add_argument("project_dir", help="the folder to make")
    create.add_argument("MLF", help="what `tvmc compile -f mlf` wrote")
    for parser in (create, actions.add_parser("build", help="compile a project"), actions.add_parser("flash", help="put a built project's program onto the device")):
        if parser is not create:
            parser.add_argument("project_dir", help="the project's folder")
        parser.add_argument("platform", choices=[*PLATFORMS, "template"], help="the device; template: of your own, with --template-dir")
        parser.add_argument("--template-dir", help="the folder of a template")
        parser.add_argument("-f", "--force", action="store_true", help="take the place of what is there")
        parser.add_argument("--project-option", action="extend", nargs="+", default=[], metavar="name=value")


def _options(given: list[str]) -> dict[str, str]:
    options = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise TVMCException(f"the project option '{text}' has no value: write name=value")
        options[name] = value
    return options


def _guarded(call: Any) -> Any:
    try:
        return call()
    except (ProjectAPIErrorBase, ServerError) as error:
        raise TVMCException(str(error)) from error


def run_micro(args: argparse.Namespace) -> None:
    """Errors: TVMCException."""
    if args.subcommand in ("create", "create-project"):
        if args.platform == "template" and not args.template_dir:
            raise TVMCException("the platform template takes --template-dir")
        if not os.path.exists(args.MLF):
            raise TVMCException(f"The MLF archive '{args.MLF}' does not exist")
        template = args.template_dir if args.platform == "template" else get_microtvm_template_projects(args.platform)
        if os.path.exists(args.project_dir):
            if not args.force:
                raise TVMCException(f"The specified project directory '{args.project_dir}' already exists; --force takes its place")
            if not os.path.exists(os.path.join(args.project_dir, "microtvm_api_server.py")):
                raise TVMCException(f"'{args.project_dir}' is no project: it is not removed")
            shutil.rmtree(args.project_dir)
        _guarded(lambda: TemplateProject.from_directory(template).generate_project_from_mlf(args.MLF, args.project_dir, _options(args.project_option)))
        return
    if not os.path.isdir(args.project_dir):
        raise TVMCException(f"there is no project '{args.project_dir}'")
    project = _guarded(lambda: GeneratedProject.from_directory(args.project_dir, _options(args.project_option)))
    _guarded(project.build if args.subcommand == "build" else project.flash)


def _executor(session: Session, model: pathlib.Path) -> tuple[Any, dict[str, Any], dict[str, str], bool]:
    """The project's model on the device: a program, or a graph that this side walks (the last is True), whose weights are set; and the shapes and
    dtypes of its inputs."""
    graphs = sorted(model.glob("executor-config/graph/*.graph"))
    if not graphs:
        program = AotModule(session.create_aot_executor())
        return (program, *program.get_input_info(), False)
    graph = create_local_graph_executor(graphs[0].read_text(encoding="utf-8"), session.get_system_lib(), session.device)
    file = model / "parameters" / f"{graphs[0].stem}.params"
    weights = load_param_dict(file.read_bytes()) if file.exists() else {}
    graph.set_input(**weights)
    inputs = [info for info in graph.get_input_info() if info[0] not in weights]
    return graph, {name: tuple(shape) for name, shape, _ in inputs}, {name: dtype for name, _, dtype in inputs}, True


def run_on_device(project_dir: str, make_inputs: Any, benchmark: bool, repeat: int, number: int) -> tuple[dict[str, Any], Any]:
    """The outputs by name, and the times. make_inputs returns inputs for given shapes and dtypes by name. Errors: TVMCException."""
    project = _guarded(lambda: GeneratedProject.from_directory(project_dir))

    def run() -> tuple[dict[str, Any], Any]:
        with Session(project.transport()) as session:
            module, shapes, dtypes, walked = _executor(session, pathlib.Path(project_dir, "model"))
            if walked and benchmark:
                raise TVMCException("a graph that is walked from here has no time of its own: compile with --executor aot to measure on the device")
            module.set_input(**make_inputs(shapes, dtypes))
            module.run()
            times = module.module.time_evaluator("run", session.device, number, repeat)() if benchmark else None
            return {f"output_{i}": module.get_output(i).numpy() for i in range(module.get_num_outputs())}, times
    return _guarded(run)


__all__ = ["add_micro_parser", "run_micro", "run_on_device"]
