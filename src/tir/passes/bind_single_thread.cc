// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/bind_single_thread.h"

#include "tir/walk.h"

namespace tilewright::tir {

PrimFunc bind_single_thread(PrimFunc function) {
  Substitution whole;
  if (function.tid) whole[function.tid.get()] = make_int(0);
  if (function.nthreads) whole[function.nthreads.get()] = make_int(1);
  function.body = substitute(function.body, whole);
  function.tid = {}, function.nthreads = {};
  return function;
}

}  // namespace tilewright::tir
