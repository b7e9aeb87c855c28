#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program, which speaks over its standard input and output.
exec "$(dirname "$0")/build/main"
