#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles the project into build/main with $CC (default: arm-none-eabi-gcc) and $CFLAGS.
set -e
cd "$(dirname "$0")"
CC=${CC:-arm-none-eabi-gcc}
command -v "$CC" >/dev/null ||
  { echo "no compiler '$CC': apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi" >&2; exit 1; }
mkdir -p build
machine="-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16"
flags="$machine -std=c99 -O2 -ffp-contract=off -ffunction-sections -fdata-sections -Wall -Wextra ${CFLAGS-}"
objects=
for source in model/codegen/host/src/*.c src/models.c src/startup.c src/main.c src/crt/*.c; do
  object=build/$(echo "$source" | tr / _).o
  "$CC" $flags -Iinclude -Imodel/codegen/host/include -c "$source" -o "$object"
  objects="$objects $object"
done
for object in model/codegen/host/lib/*.o; do [ ! -f "$object" ] || objects="$objects $object"; done
"$CC" $machine -nostartfiles --specs=nosys.specs -T src/mps2-an386.ld -Wl,--gc-sections -Wl,-Map=build/main.map $objects -lm -o build/main
size=$(echo "$CC" | sed 's/gcc$/size/')
! command -v "$size" >/dev/null || "$size" build/main build/model_*.o
