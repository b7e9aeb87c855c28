// SPDX-License-Identifier: Apache-2.0
#include "relay/dataflow_pattern.h"
#include "relay/expr.h"
using namespace tilewright;
using namespace tilewright::relay;
static Expr function;
