#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles the project into build/main with $CC and $CFLAGS.
set -e
cd "$(dirname "$0")"
CC=${CC:-cc}
command -v "$CC" >/dev/null || { echo "no C compiler '$CC': apt-get install gcc, or set CC" >&2; exit 1; }
mkdir -p build
objects=
for source in model/codegen/host/src/*.c src/models.c src/crt/*.c; do
  object=build/$(echo "$source" | tr / _).o
  "$CC" -std=c99 -O2 -ffp-contract=off -Wall -Wextra ${CFLAGS-} -Iinclude -Imodel/codegen/host/include -c "$source" -o "$object"
  objects="$objects $object"
done
"$CC" -std=gnu99 -O2 -Wall -Wextra ${CFLAGS-} -Iinclude -c src/main.c -o build/main.o
for object in model/codegen/host/lib/*.o; do [ ! -f "$object" ] || objects="$objects $object"; done
"$CC" ${CFLAGS-} -no-pie -Wl,-Map=build/main.map build/main.o $objects -lm -o build/main
