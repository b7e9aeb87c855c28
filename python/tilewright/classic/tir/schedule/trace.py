# SPDX-License-Identifier: Apache-2.0
"""The trace of a schedule's steps: printed as Python, serialised as JSON, replayed on another schedule."""
from __future__ import annotations

import typing

from .... import _core


class ScheduleError(_core.Error):
    """A scheduling step is invalid."""


class BlockRV:
    """A reference to a block of a schedule."""

    def __init__(self, name: str):
        self._name = name

    def __repr__(self) -> str:
        return f"block({self._name})"


class LoopRV:
    """A reference to a loop of a schedule."""

    def __init__(self, var: typing.Any):
        self._var = var

    def __repr__(self) -> str:
        return f"loop({self._var})"


class ExprRV(int):
    """A sampled number."""


class InstructionKind(str):
    """The name of an instruction: `GetBlock`."""

    @property
    def name(self) -> str:
        return str(self)

    @property
    def is_pure(self) -> bool:
        """Whether the instruction leaves the function unchanged."""
        return self in ("GetBlock", "GetLoops", "GetProducers", "GetConsumers", "SampleCategorical", "SamplePerfectTile", "EnterPostproc")


# Instructions whose names are not derived from their method's name.
_KINDS = {"enter_postproc": "EnterPostproc"}


class Instruction:
    """A step: method, arguments, results, and sampling decision."""

    def __init__(self, method: str, given: dict[str, typing.Any], outputs: list[typing.Any], decision: typing.Any = None):
        self._method, self._given, self.outputs, self.decision = method, given, outputs, decision

    @property
    def kind(self) -> InstructionKind:
        return InstructionKind(_KINDS.get(self._method) or "".join(word.capitalize() for word in self._method.split("_")))

    @property
    def inputs(self) -> list[typing.Any]:
        """The arguments that are blocks, loops or sampled numbers."""
        flat = [x for v in self._given.values() for x in (v if isinstance(v, (list, tuple)) else [v])]
        return [x for x in flat if isinstance(x, (BlockRV, LoopRV, ExprRV))]

    @property
    def attrs(self) -> list[typing.Any]:
        """The other arguments."""
        return [v for v in self._given.values() if not isinstance(v, (BlockRV, LoopRV, ExprRV, list, tuple))]

    def __repr__(self) -> str:
        return Trace([self]).as_python()[0]


_SPREAD = ("loops", "ordered_loops")  # parameters passed as *args


class Trace:
    """The steps of a schedule. Its text is Python; `apply_to_schedule` replays it."""

    def __init__(self, insts: typing.Any = None, decisions: typing.Any = None):
        self.insts: list[Instruction] = list(insts or [])
        for step, decision in (decisions or {}).items():
            step.decision = decision

    @property
    def decisions(self) -> dict[Instruction, typing.Any]:
        return {step: step.decision for step in self.insts if step.decision is not None}

    def get_decision(self, inst: Instruction) -> typing.Any:
        return inst.decision

    def append(self, inst: Instruction, decision: typing.Any = None) -> None:
        if decision is not None:
            inst.decision = decision
        self.insts.append(inst)

    def pop(self) -> Instruction | None:
        """Removes the last step."""
        return self.insts.pop() if self.insts else None

    def with_decision(self, inst: Instruction, decision: typing.Any, remove_postproc: bool = False) -> "Trace":
        """The same steps with another decision for one of them."""
        steps = self._without_postproc() if remove_postproc else self.insts
        if all(step is not inst for step in steps):
            raise ValueError("the instruction is none of the trace")
        return Trace([Instruction(s._method, s._given, s.outputs, list(decision) if isinstance(decision, (list, tuple)) else decision) if s is inst else s for s in steps])

    def _without_postproc(self) -> list[Instruction]:
        names = [s._method for s in self.insts]
        return self.insts[:names.index("enter_postproc")] if "enter_postproc" in names else self.insts

    def simplified(self, remove_postproc: bool) -> "Trace":
        """Without pure steps whose results are not used later."""
        used: set[int] = set()
        kept: list[Instruction] = []
        for step in reversed(self._without_postproc() if remove_postproc else self.insts):
            if step.kind.is_pure and step._method != "enter_postproc" and not any(id(o) in used for o in step.outputs):
                continue
            used.update(id(i) for i in step.inputs)
            kept.insert(0, step)
        return Trace(kept)

    def apply_to_schedule(self, sch: typing.Any, remove_postproc: bool = False, decision_provider: typing.Any = None) -> None:
        """Replays the steps on a schedule of a function with the same blocks. `decision_provider(inst, inputs, attrs, decision)` returns
        another decision. Errors: those of the steps."""
        known: dict[int, typing.Any] = {}

        def now(value: typing.Any) -> typing.Any:
            return [now(v) for v in value] if isinstance(value, (list, tuple)) else known.get(id(value), value)
        for step in self._without_postproc() if remove_postproc else self.insts:
            given = {k: now(v) for k, v in step._given.items()}
            spread = [x for name in _SPREAD for x in given.pop(name, ())]
            if step.decision is not None:
                choice = step.decision
                given["decision"] = choice if decision_provider is None else decision_provider(step, [now(i) for i in step.inputs], step.attrs, choice)
            made = _as_list(getattr(sch, step._method)(*spread, **given))
            known.update({id(old): new for old, new in zip(step.outputs, made)})

    def _named(self) -> dict[int, str]:
        names: dict[int, str] = {}
        for step in self.insts:
            for out in step.outputs:
                names[id(out)] = f"{'b' if isinstance(out, BlockRV) else 'l' if isinstance(out, LoopRV) else 'v'}{len(names)}"
        return names

    def as_python(self) -> list[str]:
        """One line per step."""
        names = self._named()

        def text(value: typing.Any) -> str:
            if id(value) in names:
                return names[id(value)]
            if isinstance(value, (list, tuple)):
                return "[" + ", ".join(text(v) for v in value) + "]"
            return str(int(value)) if isinstance(value, ExprRV) else repr(value)
        lines = []
        for step in self.insts:
            given = [", ".join(text(x) for x in v) if k in _SPREAD else f"{k}={text(v)}" for k, v in step._given.items()]
            if step.decision is not None:
                given.append(f"decision={text(step.decision)}")
            made = ", ".join(names[id(o)] for o in step.outputs)
            lines.append(f"{made + ' = ' if made else ''}sch.{step._method}({', '.join(given)})")
        return lines

    def as_json(self, remove_postproc: bool = False) -> list[typing.Any]:
        """Lists, strings and numbers: [[name, {argument: value}, [results]], ...], [[index, decision], ...]. Results of steps are
        referred to by name."""
        names = self._named()

        def plain(value: typing.Any) -> typing.Any:
            if id(value) in names:
                return {"rv": names[id(value)]}
            if isinstance(value, (list, tuple)):
                return [plain(v) for v in value]
            return int(value) if isinstance(value, ExprRV) else value
        steps = self._without_postproc() if remove_postproc else self.insts
        return [[[str(s.kind), {k: plain(v) for k, v in s._given.items()}, [names[id(o)] for o in s.outputs]] for s in steps],
                [[i, plain(s.decision)] for i, s in enumerate(steps) if s.decision is not None]]

    @staticmethod
    def apply_json_to_schedule(json_obj: typing.Any, sch: typing.Any) -> None:
        """Replays the JSON of `as_json`. Errors: ScheduleError (invalid JSON), those of the steps."""
        known: dict[str, typing.Any] = {}

        def now(value: typing.Any) -> typing.Any:
            if isinstance(value, dict):
                return known[value["rv"]]
            return [now(v) for v in value] if isinstance(value, list) else value
        try:
            steps, choices = json_obj
            decisions = {int(i): choice for i, choice in choices}
            methods = {str(Instruction(name, {}, []).kind): name for name in sch._steps()}
            for i, (kind, given, outputs) in enumerate(steps):
                values = {k: now(v) for k, v in given.items()}
                spread = [x for name in _SPREAD for x in values.pop(name, ())]
                if i in decisions:
                    values["decision"] = now(decisions[i])
                known.update(zip(outputs, _as_list(getattr(sch, methods[kind])(*spread, **values))))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ScheduleError(f"the JSON is no trace of steps ({type(error).__name__}: {error}); give what Trace.as_json wrote") from None

    def show(self, *_: typing.Any, **__: typing.Any) -> None:
        print(self)

    def __str__(self) -> str:
        return "\n".join(self.as_python())

    __repr__ = __str__

    def __len__(self) -> int:
        return len(self.insts)


def _as_list(made: typing.Any) -> list[typing.Any]:
    return list(made) if isinstance(made, (list, tuple)) else [] if made is None else [made]


__all__ = ["BlockRV", "ExprRV", "Instruction", "InstructionKind", "LoopRV", "ScheduleError", "Trace"]
