# SPDX-License-Identifier: Apache-2.0
"""Answers the Project API for the template arduino (docs/micro.md)."""
import pathlib

from tilewright.classic.micro import project_server

if __name__ == "__main__":
    project_server.serve("arduino", pathlib.Path(__file__).resolve().parent, is_template=True)
