#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A machine without the compiler: the program and libtilewright_vm.so of BUILD alone in a folder run what BUILD compiled,
# with the same results, from the shell and from C, and without that library say what is missing.
set -eu
build=$1 sources=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
mkdir "$place/device"
cp "$build/tilewright" "$build/examples/run_model/run_any_batch" "$build/libtilewright_vm.so" "$place/device"
here=$build/tilewright there=$place/device/tilewright
if readelf -d "$place/device/libtilewright_vm.so" | grep -qi 'llvm\|tilewright_compiler'; then fail "the library needs the compiler"; fi
size=$(wc -c <"$place/device/libtilewright_vm.so")
if [ "$size" -gt 9000000 ]; then fail "the library has $size bytes"; fi

# NAME INPUTS...: the same numbers on both sides (sums of an interpreter are rounded otherwise).
alike() {
  name=$1
  shift
  "$here" compile "$sources/tests/data/onnx/$name.onnx" --bound none -o "$place/$name.so" >"$place/said"
  "$here" run "$place/$name.so" "$@" >"$place/compiled" 2>"$place/notes" || fail "$name: $(cat "$place/notes")"
  "$there" run "$place/$name.so" "$@" >"$place/interpreted" 2>"$place/notes" || fail "$name there: $(cat "$place/notes")"
  results() { sed '/loaded in/d; s/\([0-9]\.[0-9][0-9][0-9]\)[0-9]*/\1/g' "$1"; }
  [ "$(results "$place/compiled")" = "$(results "$place/interpreted")" ] ||
    fail "$name: $(cat "$place/compiled") is not $(cat "$place/interpreted")"
}
alike convnet --shape x=2x3x8x8 --seed 7
grep -q 'the compiler is not installed here' "$place/notes" || fail "nothing says that it is slow"
grep -q 'libtilewright_vm.so' "$place/said" || fail "compile does not say what is needed: $(cat "$place/said")"
alike free_sizes --input x=ones --shape x=2x3 --input positive=1 --input trips=2 --input shape=3,2
alike tokens --input ids=ones --shape ids=2x5 --input mask=ones --shape mask=2x5

# From C. What is found in the library's folder counts, so this one finds no compiler.
ran=$(LD_LIBRARY_PATH=$place/device "$place/device/run_any_batch" "$place/convnet.so" 1 3) || fail "the example does not run: $ran"
echo "$ran" | grep -q 'sizes are interpreted' || fail "the example found a compiler: $ran"
[ "$(echo "$ran" | grep -c 'batch .: output')" = 2 ] || fail "the example says $ran"

rm "$place/device/libtilewright_vm.so"
if "$there" run "$place/convnet.so" --shape x=2x3x8x8 >"$place/ran" 2>&1; then fail "it runs without the library"; fi
grep -q 'install the compiler, or libtilewright_vm.so' "$place/ran" || fail "without the library it says: $(cat "$place/ran")"
echo "without the compiler: $size bytes interpret"
