# SPDX-License-Identifier: Apache-2.0
"""Stands for the process that measures kernels: what a trial's configuration names happens when its turn comes."""
import json
import os
import resource
import signal
import socket
import time

channel = socket.socket(fileno=0)
lines = channel.makefile("r")


def say(**message):
    channel.sendall((json.dumps(message) + "\n").encode())


def misbehave(how):
    if how == "abort":
        os.abort()
    elif how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "endless":
        while True:
            time.sleep(60)
    elif how == "hog":
        resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))
        kept = []
        while True:
            kept.append(bytearray(1 << 24))
    elif how == "garbage":
        channel.sendall(b"[[[\n")


for line in lines:
    batch = json.loads(line)
    trials = [text.split() for _, text in batch["trials"]]  # "fine 3", "abort run", "endless build", "killed time"
    say(kind="building")
    for what, when in trials:
        if when == "build":
            misbehave(what)
    if any(what == "refused" for what, _ in trials):
        say(kind="failed", text="it cannot be compiled")
        continue
    for i, (what, when) in enumerate(trials):
        say(kind="running", trial=i)
        if when == "run":
            misbehave(what)
    say(kind="timing")
    for what, when in trials:
        if when == "time":
            misbehave(what)
    say(kind="done", results=[{"costs": [float(when)] if what == "fine" else [1.0], "error": 0, "message": "", "seconds": 0.001}
                              for what, when in trials])
