#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well the compiler's cost model and one that is learned (xgboost) rank kernels: rank correlations with measured times.

    PYTHONPATH=build/python python bench/cost_model.py [--trials 64] [--log sweep.log]

A sweep measures some of the configurations that the cost model ranks, taken by chance, of ResNet-18's convolutions; the learned model is trained on half of a task's and ranks the other half, which is what
a tuner asks of it. With --log a sweep is kept, and used again."""
import argparse
import os

import numpy as np

from tilewright.classic import autotvm, relay
from tilewright.classic.autotvm.tuner.cost_model import LearnedModel


def correlation(scores, seconds):
    """Spearman's: 1 where the scores fall as the times grow."""
    ranks = [np.argsort(np.argsort(v, kind="stable"), kind="stable").astype(float) for v in (scores, -np.asarray(seconds))]
    return float(np.corrcoef(*ranks)[0, 1])


def measured(tasks, trials, log):
    if not os.path.exists(log):
        option = autotvm.measure_option(autotvm.LocalBuilder(), autotvm.LocalRunner(number=1, repeat=5))
        write = autotvm.callback.log_to_file(log)
        for task in tasks:
            batch = autotvm.create_measure_batch(task, option)
            chosen = [int(i) for i in np.random.permutation(task.core.ranked)[:trials]]
            for at in range(0, len(chosen), 8):
                inputs = [autotvm.MeasureInput(task.target, task, task.config_space.get(i)) for i in chosen[at:at + 8]]
                write(None, inputs, batch(inputs))
    out = {task.workload: {} for task in tasks}
    for inp, result in autotvm.record.load_from_file(log):
        task = next((t for t in tasks if t.workload == inp.task.workload), None)
        index = None if task is None else task.index_of(inp.config)
        if index is not None and result.error_no == 0:
            out[task.workload][index] = float(np.median(result.costs))
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--log", default="cost_model_sweep.log")
    parser.add_argument("--tasks", type=int, default=6)
    args = parser.parse_args()
    np.random.seed(0)
    mod, params = relay.testing.resnet.get_workload(num_layers=18, batch_size=1)
    tasks = [t for t in autotvm.task.extract_from_program(mod["main"], target="llvm", params=params) if t.name.startswith("conv2d")][:args.tasks]
    times = measured(tasks, args.trials, args.log)
    rows = []
    for task in tasks:
        known = times[task.workload]
        indices = sorted(known)
        place = {index: k for k, index in enumerate(task.core.ranked)}
        cells = [[], [], []]
        for seed in range(5):
            mixed = np.random.RandomState(seed).permutation(indices)
            train, rest = list(mixed[:len(mixed) // 2]), list(mixed[len(mixed) // 2:])
            seconds = [known[i] for i in rest]
            cells[0].append(correlation(np.array([-place.get(i, len(place)) for i in rest]), seconds))
            for cell, loss in zip(cells[1:], ("rank", "reg")):
                model = LearnedModel(task, "knob", loss, seed=seed)
                model.fit(train, [known[i] for i in train])
                cell.append(correlation(model.predict(rest), seconds))
        rows.append([np.mean(c) for c in cells])
        print(f"{str(task.args[1][1]):20} {len(indices):4} kernels  analytical {rows[-1][0]:6.2f}  learned, rank {rows[-1][1]:6.2f}  learned, reg {rows[-1][2]:6.2f}", flush=True)
    print("mean: analytical {:.2f}, learned by rank {:.2f}, by regression {:.2f}".format(*np.mean(rows, axis=0)))


if __name__ == "__main__":
    main()
