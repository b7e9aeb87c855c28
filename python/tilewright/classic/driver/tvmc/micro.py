# SPDX-License-Identifier: Apache-2.0
"""`tvmc micro`: projects for devices, and running their models (docs/micro.md)."""
from __future__ import annotations

import argparse
import os
import shutil
from typing import Any

from ...micro import GeneratedProject, Session, TemplateProject, get_microtvm_template_projects
from ...micro.project_api.client import ProjectAPIErrorBase
from ...micro.project_api.server import ServerError
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


def run_on_device(project_dir: str, make_inputs: Any, benchmark: bool, repeat: int, number: int) -> tuple[dict[str, Any], Any]:
    """The outputs by name, and the times. make_inputs returns inputs for given shapes and dtypes by name. Errors: TVMCException."""
    project = _guarded(lambda: GeneratedProject.from_directory(project_dir))

    def run() -> tuple[dict[str, Any], Any]:
        with Session(project.transport()) as session:
            module = AotModule(session.create_aot_executor())
            module.set_input(**make_inputs(*module.get_input_info()))
            module.run()
            times = module.module.time_evaluator("run", session.device, number, repeat)() if benchmark else None
            return {f"output_{i}": module.get_output(i).numpy() for i in range(module.get_num_outputs())}, times
    return _guarded(run)


__all__ = ["add_micro_parser", "run_micro", "run_on_device"]
