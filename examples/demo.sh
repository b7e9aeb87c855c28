#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the three networks of PP-OCRv4 and reads a scanned page with them. Run by ./dev demo after it has built the
# project and fetched the models.
set -euo pipefail
cd "$(dirname "$0")/.."
models=.cache/models out=.cache/demo picture=.cache/pictures/page.png
mkdir -p "$out"

# Milliseconds since some fixed moment, from the seconds with a comma or a point that bash gives.
now() { local t=${EPOCHREALTIME/[,.]/}; echo $((t / 1000)); }

# compile NAME MODEL SHAPE: unless the artifact is newer than the model and than the compiler.
compile() {
  local artifact=$out/$1.so model=$models/$2.onnx started
  if [ ! "$artifact" -nt "$model" ] || [ ! "$artifact" -nt build/libtilewright_compiler.so ]; then
    started=$(now)
    build/tilewright compile "$model" -o "$artifact" --shape "x=$3" --quiet
    took="$(($(now) - started)) ms"
  else
    took="already there"
  fi
  printf '  %-9s %-22s %5d KiB to %6d KiB   compiled: %s\n' "$1" "x=$3" $(($(stat -Lc %s "$model") / 1024)) \
    $(($(stat -c %s "$artifact") / 1024)) "$took"
}

echo "compiling (ONNX in, native library out)"
compile detect ppocr_det 1x3x384x768
compile classify ppocr_cls 1x3x48x192
# Lines have any length: one library for three widths, and each line takes the narrowest that fits.
compile recognise ppocr_rec '1x3x48x{320,640,960}'
echo
build/read_page "$out"/{detect,classify,recognise}.so "$picture" -o "$out/page_boxes.png" --repeat 5
cat <<END

With a model of yours:
  build/tilewright compile model.onnx -o model.so          (free dimensions: it says which --shape to give)
  build/tilewright run model.so --input image=@photo.jpg --top 5
  build/tilewright verify model.onnx                       (compares with the reference interpreter)
END
