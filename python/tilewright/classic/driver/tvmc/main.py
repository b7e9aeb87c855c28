# SPDX-License-Identifier: Apache-2.0
"""The classic command line: `python -m tilewright.classic.driver.tvmc compile --target llvm -o model.tar model.onnx`, `... run model.tar`."""
from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from ...relay.backend import Executor, Runtime
from ...target import Target, TargetKind
from . import autotuner, compiler, frontends, micro, runner
from .common import TVMCException, parse_shape_string
from .model import TVMCPackage


def _add_target_options(parser: argparse.ArgumentParser) -> None:
    """--target-<kind>-<attribute> for all that the kinds have."""
    types = {"int": int, "bool": lambda text: bool(int(text)), "float": float}
    for kind in Target.list_kinds():
        for name, of in sorted(TargetKind.options_from_name(kind).items()):
            parser.add_argument(f"--target-{kind}-{name}", dest=f"target {kind} {name}", type=types.get(of, str), help=argparse.SUPPRESS if kind != "llvm" else f"target {kind}'s {name}")


def _target_options(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    return {kind: _options_of(args, "target", kind) for kind in Target.list_kinds()}


def _options_of(args: argparse.Namespace, part: str, kind: str) -> dict[str, Any]:
    """What --<part>-<kind>-<name> arguments say, by name."""
    start = f"{part} {kind} "
    return {key.removeprefix(start): value for key, value in vars(args).items() if key.startswith(start) and value is not None}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tvmc", description="The classic command line over Tilewright; 'tilewright --help' has more.")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="accepted")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    verbs = parser.add_subparsers(title="commands", dest="verb")
    c = verbs.add_parser("compile", help="compile a model")
    c.add_argument("FILE", help="path to the input model file (ONNX)")
    c.add_argument("-o", "--output", default="module.tar", help="the package to write")
    c.add_argument("-f", "--output-format", choices=["so", "tar", "mlf"], default="so")
    c.add_argument("--target", default="llvm", help="for instance \"llvm -mcpu=x86-64-v3\"")
    _add_target_options(c)
    c.add_argument("-O", "--opt-level", type=int, choices=range(0, 5), default=3)
    c.add_argument("--input-shapes", type=parse_shape_string, help="\"name:[1,2],name2:[3]\"")
    c.add_argument("--model-format", choices=frontends.get_frontend_names())
    c.add_argument("--desired-layout", choices=["NCHW", "NHWC"])
    c.add_argument("--dump-code", default="", help="relay")
    c.add_argument("--cross-compiler", default=None)
    c.add_argument("--cross-compiler-options", default="")
    c.add_argument("--pass-config", action="append", default=None, metavar="name=value")
    c.add_argument("--disabled-pass", default="", help="comma separated")
    c.add_argument("--tuning-records", default=None, help="a log of `tvmc tune` or of autotvm's tuners")
    c.add_argument("--executor", choices=["graph", "aot"], default="graph")
    c.add_argument("--runtime", choices=["cpp", "crt"], default="cpp")
    for part, kinds in (("executor", Executor), ("runtime", Runtime)):
        for kind in kinds.list_registered():
            for name, of in kinds.list_registered_options(kind).items():
                c.add_argument(f"--{part}-{kind}-{name}", dest=f"{part} {kind} {name}", type=str if "String" in of else int, help=f"option of the {part} {kind}")
    c.add_argument("--module-name", default="default")
    c.add_argument("-v", "--verbose", action="count", default=0, help="accepted")
    r = verbs.add_parser("run", help="run a compiled module")
    r.add_argument("PATH", help="path to the package, or with --device micro to the project")
    r.add_argument("--device", choices=["cpu", "cuda", "cl", "metal", "vulkan", "rocm", "micro"], default="cpu")
    r.add_argument("--fill-mode", choices=["zeros", "ones", "random"], default="random")
    r.add_argument("-i", "--inputs", help="a .npz file")
    r.add_argument("-o", "--outputs", help="the .npz file to write")
    r.add_argument("--print-time", action="store_true")
    r.add_argument("--print-top", type=int, metavar="N")
    r.add_argument("--profile", action="store_true")
    r.add_argument("--end-to-end", action="store_true")
    r.add_argument("--repeat", type=int, default=1)
    r.add_argument("--number", type=int, default=1)
    r.add_argument("--rpc-key", default=None)
    r.add_argument("--rpc-tracker", default=None)
    t = verbs.add_parser("tune", help="tune a model")
    t.add_argument("FILE", help="path to the input model file (ONNX)")
    t.add_argument("-o", "--output", required=True, help="the log that records are appended to")
    t.add_argument("--target", default="llvm", help="for instance \"llvm -mcpu=x86-64-v3\"")
    _add_target_options(t)
    t.add_argument("--input-shapes", type=parse_shape_string, help="\"name:[1,2],name2:[3]\"")
    t.add_argument("--model-format", choices=frontends.get_frontend_names())
    t.add_argument("--desired-layout", choices=["NCHW", "NHWC"])
    t.add_argument("--trials", type=int, default=1000, help="at most so many in all")
    t.add_argument("--tuner", choices=sorted(autotuner.TUNERS), default="xgb")
    t.add_argument("--early-stopping", type=int)
    t.add_argument("--tuning-records", default=None, help="a log to learn from")
    t.add_argument("--timeout", type=float, default=10, help="seconds for each trial")
    t.add_argument("--min-repeat-ms", type=float, default=0)
    t.add_argument("--number", type=int, default=10)
    t.add_argument("--repeat", type=int, default=1)
    t.add_argument("--parallel", type=int, default=8, help="kernels that are compiled and measured together")
    t.add_argument("-v", "--verbose", action="count", default=0, help="accepted")
    micro.add_micro_parser(verbs)
    return parser


def _compile(args: argparse.Namespace) -> None:
    model = frontends.load_model(args.FILE, args.model_format, args.input_shapes)
    executor, runtime = Executor(args.executor, _options_of(args, "executor", args.executor)), Runtime(args.runtime, _options_of(args, "runtime", args.runtime))
    compiler.compile_model(model, args.target, args.opt_level, executor, runtime, args.tuning_records,
                           args.output, args.cross_compiler, args.cross_compiler_options, args.output_format, args.dump_code, None, args.desired_layout,
                           args.disabled_pass, args.pass_config, _target_options(args),
                           mod_name=args.module_name)


def _tune(args: argparse.Namespace) -> None:
    model = frontends.load_model(args.FILE, args.model_format, args.input_shapes)
    autotuner.tune_model(model, args.target, args.output, args.tuning_records, trials=args.trials, tuner=args.tuner, min_repeat_ms=args.min_repeat_ms,
                         early_stopping=args.early_stopping, desired_layout=args.desired_layout, timeout=args.timeout, repeat=args.repeat, number=args.number,
                         parallel=args.parallel,
                         additional_target_options=_target_options(args))


def _run(args: argparse.Namespace) -> None:
    host, _, port = (args.rpc_tracker or "").partition(":")
    if port and not port.isdigit():
        raise TVMCException(f"'{args.rpc_tracker}' is no tracker: give host:port")
    package = TVMCPackage(args.PATH, project_dir=args.PATH if args.device == "micro" else None)
    result = runner.run_module(package, args.device, host or None, int(port or 9090), args.rpc_key, inputs=args.inputs, fill_mode=args.fill_mode,
                               benchmark=args.print_time, repeat=args.repeat, number=args.number, profile=args.profile, end_to_end=args.end_to_end)
    if args.print_time:
        print(result.format_times())
    if args.profile:
        print(result.get_profile())
    if args.print_top:
        for name, output in result.outputs.items():
            flat: Any = output.reshape(-1)
            best = np.argsort(-flat, kind="stable")[: args.print_top]
            print(np.array((best, flat[best])))
    if args.outputs:
        result.save(args.outputs)


def _main(argv: list[str]) -> int:
    """The exit status of a command line, as scripts of the classic stack ask for it."""
    try:
        main(argv)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return int(end.code or 0)
    return 0


def main(argv: list[str] | None = None) -> None:
    parser = _parser()
    args, rest = parser.parse_known_args(argv)
    if args.version:
        from .... import __version__
        print(__version__)
        return
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if args.verb is None:
        parser.print_help(sys.stderr)
        sys.exit(1)
    from ...._core import Error
    try:
        {"compile": _compile, "run": _run, "tune": _tune, "micro": micro.run_micro}[args.verb](args)
    except (TVMCException, Error, NotImplementedError, OSError, ValueError) as error:
        sys.exit(f"Error: {error}")


if __name__ == "__main__":
    main()
