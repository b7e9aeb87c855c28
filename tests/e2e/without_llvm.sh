#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A compiler without LLVM: FOLDER has the program and its library, SOURCES the checkout, CMAKE the program of that name.
# It compiles a model as byte code and as C, both give the reference's results, and what needs LLVM is said in one sentence.
set -eu
folder=$1 sources=$2 cmake=$3
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
tool=$folder/tilewright model=$sources/tests/data/onnx/convnet.onnx shape=x=2x3x8x8

if readelf -d "$folder"/libtilewright_compiler.so | grep -qi 'llvm\|lld'; then fail "the compiler still needs LLVM"; fi

"$tool" compile "$model" --target stackvm -o "$place/net.stackvm" --quiet
"$tool" run "$place/net.stackvm" >"$place/ran" || fail "byte code does not run"
"$tool" verify "$model" --shape $shape --target stackvm >"$place/verified" || fail "byte code gives other results: $(cat "$place/verified")"
"$tool" compile "$model" --shape $shape --target c -o "$place/net.c" --quiet
if command -v cc >/dev/null; then
  "$tool" verify "$model" --shape $shape --target c >"$place/verified" || fail "C gives other results: $(cat "$place/verified")"
fi
"$tool" compile "$sources/tests/data/onnx/computed_control.onnx" --target stackvm -o "$place/loop.stackvm" --quiet || fail "a program is not compiled"

# What needs LLVM names the option.
for wanted in "-o $place/net.so" "--target llvm -o $place/net.o" "--target c -o $place/net.so"; do
  # shellcheck disable=SC2086
  if "$tool" compile "$model" --shape $shape $wanted >"$place/out" 2>&1; then fail "compile $wanted works without LLVM"; fi
  grep -q 'E401 UnknownTarget.*TILEWRIGHT_LLVM=OFF' "$place/out" || fail "compile $wanted says: $(cat "$place/out")"
done

# The option configures a build that neither looks for LLVM nor links it.
"$cmake" -S "$sources" -B "$place/build" -G Ninja -DTILEWRIGHT_LLVM=OFF -DTILEWRIGHT_TESTS=OFF -DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON >"$place/configured" 2>&1 ||
  fail "it does not configure: $(tail -n 5 "$place/configured")"
if grep -q 'libLLVM\|liblld\|codegen/llvm/' "$place/build/build.ninja"; then fail "the build still names LLVM"; fi
echo "without LLVM: byte code and C"
