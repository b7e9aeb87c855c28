/* SPDX-License-Identifier: Apache-2.0
 * Calls of oneDNN's C interface (2 and 3) for a fixed network. Each function adds a primitive to the network and
 * returns its result, in the format that oneDNN prefers; constants are reordered once, when the network is made. What
 * fails is told by onednn_net.failed, and everything after it does nothing. */
#include <dnnl.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#define ONEDNN_FUNCTION static __attribute__((unused)) /* a network calls some of them */
#else
#define ONEDNN_FUNCTION static
#endif

#define SIZES(...) ((const int64_t[]){__VA_ARGS__})

enum { ONEDNN_MOST_ARGUMENTS = 12 };

typedef struct {
  dnnl_memory_t memory;
  int constant;
} onednn_value;

typedef struct {
  dnnl_primitive_t primitive;
  dnnl_exec_arg_t arguments[ONEDNN_MOST_ARGUMENTS];
  int count;
} onednn_call;

typedef struct {
  dnnl_memory_t view, of; /* the same bytes with other sizes: the address may change with each run */
} onednn_view;

typedef struct {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  const char* failed; /* what oneDNN refused, or null */
  onednn_call* calls;
  onednn_view* views;
  dnnl_memory_t* memories;
  size_t call_count, view_count, memory_count;
} onednn_net;

typedef struct {
  dnnl_dims_t strides, gaps, before, after; /* gaps between the taps */
} onednn_window;

/* What a convolution or a product does to its result before it stores it. */
typedef struct {
  dnnl_post_ops_t ops;
  onednn_value bias, sum;
  int sum_may_be_written; /* nothing reads it later */
  int argument_ids[ONEDNN_MOST_ARGUMENTS];
  onednn_value arguments[ONEDNN_MOST_ARGUMENTS];
  int argument_count;
} onednn_tail;

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t onednn_own_desc;
typedef const_dnnl_memory_desc_t onednn_desc;
#define ONEDNN_DESC(own) (own)
#define ONEDNN_FREE_DESC(own) dnnl_memory_desc_destroy(own)
#else
typedef dnnl_memory_desc_t onednn_own_desc;
typedef const dnnl_memory_desc_t* onednn_desc;
#define ONEDNN_DESC(own) (&(own))
#define ONEDNN_FREE_DESC(own) ((void)(own))
#endif

ONEDNN_FUNCTION int onednn_ok(onednn_net* net, dnnl_status_t status, const char* what) {
  if (status != dnnl_success && !net->failed) net->failed = what;
  return net->failed == NULL;
}

/* Room for one more element of a list; null, and a failed network, without memory. */
ONEDNN_FUNCTION void* onednn_grown(onednn_net* net, void* list, size_t count, size_t bytes) {
  void* more = realloc(list, (count + 1) * bytes);
  if (!more) net->failed = "there is no memory for the network";
  return more;
}

ONEDNN_FUNCTION void onednn_open(onednn_net* net) {
  memset(net, 0, sizeof *net);
  if (onednn_ok(net, dnnl_engine_create(&net->engine, dnnl_cpu, 0), "oneDNN has no engine for this processor"))
    onednn_ok(net, dnnl_stream_create(&net->stream, net->engine, dnnl_stream_default_flags), "oneDNN has no stream");
}

ONEDNN_FUNCTION void onednn_close(onednn_net* net) {
  for (size_t i = 0; i < net->call_count; ++i) dnnl_primitive_destroy(net->calls[i].primitive);
  for (size_t i = 0; i < net->memory_count; ++i) dnnl_memory_destroy(net->memories[i]);
  free(net->calls);
  free(net->views);
  free(net->memories);
  if (net->stream) dnnl_stream_destroy(net->stream);
  if (net->engine) dnnl_engine_destroy(net->engine);
  memset(net, 0, sizeof *net);
}

ONEDNN_FUNCTION onednn_desc onednn_desc_of(onednn_value value) {
  onednn_desc desc = NULL;
  dnnl_memory_get_memory_desc(value.memory, &desc);
  return desc;
}

/* `data`: DNNL_MEMORY_ALLOCATE, DNNL_MEMORY_NONE, or where the bytes are. */
ONEDNN_FUNCTION onednn_value onednn_memory(onednn_net* net, onednn_desc desc, void* data, int constant) {
  onednn_value out = {NULL, constant};
  dnnl_memory_t* more = net->failed ? NULL : onednn_grown(net, net->memories, net->memory_count, sizeof *more);
  if (!more) return out;
  net->memories = more;
  if (onednn_ok(net, dnnl_memory_create(&out.memory, desc, net->engine, data), "oneDNN makes no such tensor"))
    net->memories[net->memory_count++] = out.memory;
  return out;
}

/* Of floats: row major, or in whatever format a primitive prefers. */
ONEDNN_FUNCTION onednn_own_desc onednn_describe(onednn_net* net, int rank, const int64_t* sizes, int any) {
  static const dnnl_format_tag_t tags[] = {dnnl_a, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef};
  const dnnl_format_tag_t tag = any ? dnnl_format_tag_any : tags[rank];
  dnnl_dims_t dims = {1};
  onednn_own_desc out;
  memset(&out, 0, sizeof out);
  for (int d = 0; d < rank; ++d) dims[d] = sizes[d];
  if (net->failed) return out;
#if DNNL_VERSION_MAJOR >= 3
  onednn_ok(net, dnnl_memory_desc_create_with_tag(&out, rank, dims, dnnl_f32, tag), "oneDNN has no such tensor");
#else
  onednn_ok(net, dnnl_memory_desc_init_by_tag(&out, rank, dims, dnnl_f32, tag), "oneDNN has no such tensor");
#endif
  return out;
}

ONEDNN_FUNCTION onednn_value onednn_tensor(onednn_net* net, int rank, const int64_t* sizes, const float* data) {
  onednn_own_desc desc = onednn_describe(net, rank, sizes, 0);
  const onednn_value out = onednn_memory(net, ONEDNN_DESC(desc), (void*)data, data != NULL);
  ONEDNN_FREE_DESC(desc);
  return out;
}
ONEDNN_FUNCTION onednn_value onednn_argument(onednn_net* net, int rank, const int64_t* sizes) {
  return onednn_tensor(net, rank, sizes, DNNL_MEMORY_NONE);
}
ONEDNN_FUNCTION onednn_value onednn_constant(onednn_net* net, int rank, const int64_t* sizes, const float* data) {
  return onednn_tensor(net, rank, sizes, data);
}

ONEDNN_FUNCTION void onednn_bind(onednn_call* call, int id, onednn_value value) {
  if (call->count >= ONEDNN_MOST_ARGUMENTS) return;
  call->arguments[call->count].arg = id;
  call->arguments[call->count++].memory = value.memory;
}

/* Makes the primitive, and runs it now if its operands are constant, or else in each run. */
ONEDNN_FUNCTION void onednn_add_call(onednn_net* net, dnnl_primitive_desc_t made, onednn_call call, int now) {
  if (!net->failed) onednn_ok(net, dnnl_primitive_create(&call.primitive, made), "oneDNN makes no such primitive");
  if (made) dnnl_primitive_desc_destroy(made);
  if (net->failed) return;
  if (now) {
    onednn_ok(net, dnnl_primitive_execute(call.primitive, net->stream, call.count, call.arguments),
              "oneDNN cannot reorder a constant");
    dnnl_stream_wait(net->stream);
    dnnl_primitive_destroy(call.primitive);
    return;
  }
  onednn_call* more = onednn_grown(net, net->calls, net->call_count, sizeof *more);
  if (!more) return;
  net->calls = more;
  net->calls[net->call_count++] = call;
}

ONEDNN_FUNCTION void onednn_copy(onednn_net* net, onednn_value from, onednn_value to, int now) {
  dnnl_primitive_desc_t made = NULL;
  onednn_call call = {NULL, {{0, NULL}}, 0};
  if (net->failed) return;
  onednn_ok(net,
            dnnl_reorder_primitive_desc_create(&made, onednn_desc_of(from), net->engine, onednn_desc_of(to),
                                               net->engine, NULL),
            "oneDNN has no such reorder");
  onednn_bind(&call, DNNL_ARG_FROM, from);
  onednn_bind(&call, DNNL_ARG_TO, to);
  onednn_add_call(net, made, call, now);
}

/* The value in a format: itself, or a copy. */
ONEDNN_FUNCTION onednn_value onednn_laid_out(onednn_net* net, onednn_value value, onednn_desc wanted) {
  if (net->failed || dnnl_memory_desc_equal(onednn_desc_of(value), wanted)) return value;
  const onednn_value out = onednn_memory(net, wanted, DNNL_MEMORY_ALLOCATE, value.constant);
  onednn_copy(net, value, out, value.constant);
  return out;
}

/* The value, whose sizes are `sizes`, seen with others. */
ONEDNN_FUNCTION onednn_value onednn_seen_as(onednn_net* net, onednn_value value, int rank, const int64_t* sizes,
                                            int seen_rank, const int64_t* seen) {
  onednn_own_desc flat = onednn_describe(net, rank, sizes, 0), desc = onednn_describe(net, seen_rank, seen, 0);
  onednn_value out = {NULL, value.constant};
  if (!net->failed) {
    const onednn_value plain = onednn_laid_out(net, value, ONEDNN_DESC(flat));
    void* data = NULL;
    if (!net->failed) dnnl_memory_get_data_handle(plain.memory, &data);
    out = onednn_memory(net, ONEDNN_DESC(desc), data, value.constant);
    onednn_view* more = net->failed ? NULL : onednn_grown(net, net->views, net->view_count, sizeof *more);
    if (more) {
      net->views = more;
      net->views[net->view_count].view = out.memory;
      net->views[net->view_count++].of = plain.memory;
    }
  }
  ONEDNN_FREE_DESC(flat);
  ONEDNN_FREE_DESC(desc);
  return out;
}

ONEDNN_FUNCTION onednn_tail onednn_begin_tail(onednn_net* net) {
  onednn_tail tail;
  memset(&tail, 0, sizeof tail);
  if (!net->failed) onednn_ok(net, dnnl_post_ops_create(&tail.ops), "oneDNN has no post-ops");
  return tail;
}
ONEDNN_FUNCTION void onednn_then_eltwise(onednn_net* net, onednn_tail* tail, dnnl_alg_kind_t kind, float alpha,
                                         float beta) {
  if (net->failed) return;
#if DNNL_VERSION_MAJOR >= 3
  onednn_ok(net, dnnl_post_ops_append_eltwise(tail->ops, kind, alpha, beta), "oneDNN has no such post-op");
#else
  onednn_ok(net, dnnl_post_ops_append_eltwise(tail->ops, 1.0f, kind, alpha, beta), "oneDNN has no such post-op");
#endif
}
/* Adds a tensor of the result's sizes. */
ONEDNN_FUNCTION void onednn_then_sum(onednn_net* net, onednn_tail* tail, onednn_value addend, int may_be_written) {
  if (net->failed) return;
  tail->sum = addend;
  tail->sum_may_be_written = may_be_written;
#if DNNL_VERSION_MAJOR >= 3
  onednn_ok(net, dnnl_post_ops_append_sum(tail->ops, 1.0f, 0, dnnl_data_type_undef), "oneDNN has no sum");
#else
  onednn_ok(net, dnnl_post_ops_append_sum(tail->ops, 1.0f), "oneDNN has no sum");
#endif
}
/* Adds a tensor that is repeated along axes of size 1; row major. */
ONEDNN_FUNCTION void onednn_then_add(onednn_net* net, onednn_tail* tail, onednn_value addend) {
  if (net->failed) return;
  if (tail->argument_count + 5 > ONEDNN_MOST_ARGUMENTS) {
    net->failed = "a convolution has too many addends";
    return;
  }
  tail->argument_ids[tail->argument_count] =
      DNNL_ARG_ATTR_MULTIPLE_POST_OP(dnnl_post_ops_len(tail->ops)) | DNNL_ARG_SRC_1;
  tail->arguments[tail->argument_count++] = addend;
  onednn_ok(net, dnnl_post_ops_append_binary(tail->ops, dnnl_binary_add, onednn_desc_of(addend)),
            "oneDNN has no such post-op");
}

ONEDNN_FUNCTION dnnl_primitive_attr_t onednn_end_tail(onednn_net* net, onednn_tail* tail) {
  dnnl_primitive_attr_t attr = NULL;
  if (!net->failed && onednn_ok(net, dnnl_primitive_attr_create(&attr), "oneDNN has no attributes"))
    onednn_ok(net, dnnl_primitive_attr_set_post_ops(attr, tail->ops), "oneDNN refuses the post-ops");
  if (tail->ops) dnnl_post_ops_destroy(tail->ops);
  return attr;
}

/* The call of a convolution or product that was made, with its operands in the formats that it wants. */
ONEDNN_FUNCTION onednn_value onednn_weighted(onednn_net* net, const onednn_tail* tail, dnnl_primitive_desc_t made,
                                             onednn_value data, onednn_value weights) {
  onednn_call call = {NULL, {{0, NULL}}, 0};
  onednn_value out = {NULL, 0};
  if (net->failed) return out;
  onednn_bind(&call, DNNL_ARG_SRC,
              onednn_laid_out(net, data, dnnl_primitive_desc_query_md(made, dnnl_query_src_md, 0)));
  onednn_bind(&call, DNNL_ARG_WEIGHTS,
              onednn_laid_out(net, weights, dnnl_primitive_desc_query_md(made, dnnl_query_weights_md, 0)));
  if (tail->bias.memory) onednn_bind(&call, DNNL_ARG_BIAS, tail->bias);
  for (int i = 0; i < tail->argument_count; ++i) onednn_bind(&call, tail->argument_ids[i], tail->arguments[i]);
  onednn_desc wanted = dnnl_primitive_desc_query_md(made, dnnl_query_dst_md, 0);
  if (tail->sum_may_be_written && !net->failed && dnnl_memory_desc_equal(onednn_desc_of(tail->sum), wanted)) {
    out = tail->sum;
  } else {
    out = onednn_memory(net, wanted, DNNL_MEMORY_ALLOCATE, 0);
    if (tail->sum.memory) onednn_copy(net, tail->sum, out, 0);
  }
  onednn_bind(&call, DNNL_ARG_DST, out);
  onednn_add_call(net, made, call, 0);
  return out;
}

/* `weights` in OIHW, or GOIHW with groups: rank 5. */
ONEDNN_FUNCTION onednn_value onednn_conv2d(onednn_net* net, onednn_tail* tail, onednn_value data, const int64_t* in,
                                           onednn_value weights, int rank, const int64_t* kernel, const int64_t* out,
                                           onednn_window w) {
  onednn_own_desc src = onednn_describe(net, 4, in, 1), wei = onednn_describe(net, rank, kernel, 1),
                  dst = onednn_describe(net, 4, out, 1), add = onednn_describe(net, 1, out + 1, 1);
  dnnl_primitive_attr_t attr = onednn_end_tail(net, tail);
  dnnl_primitive_desc_t made = NULL;
  if (!net->failed) {
    onednn_desc bias = tail->bias.memory ? ONEDNN_DESC(add) : NULL;
#if DNNL_VERSION_MAJOR >= 3
    const dnnl_status_t status = dnnl_convolution_forward_primitive_desc_create(
        &made, net->engine, dnnl_forward_inference, dnnl_convolution_direct, src, wei, bias, dst, w.strides, w.gaps,
        w.before, w.after, attr);
#else
    dnnl_convolution_desc_t wanted;
    dnnl_status_t status =
        dnnl_dilated_convolution_forward_desc_init(&wanted, dnnl_forward_inference, dnnl_convolution_direct, &src, &wei,
                                                   bias, &dst, w.strides, w.gaps, w.before, w.after);
    if (status == dnnl_success) status = dnnl_primitive_desc_create(&made, &wanted, attr, net->engine, NULL);
#endif
    onednn_ok(net, status, "oneDNN has no such convolution");
  }
  if (attr) dnnl_primitive_attr_destroy(attr);
  ONEDNN_FREE_DESC(src), ONEDNN_FREE_DESC(wei), ONEDNN_FREE_DESC(dst), ONEDNN_FREE_DESC(add);
  return onednn_weighted(net, tail, made, data, weights);
}

ONEDNN_FUNCTION onednn_value onednn_dense(onednn_net* net, onednn_tail* tail, onednn_value data, int rank,
                                          const int64_t* in, onednn_value weights, const int64_t* kernel,
                                          const int64_t* out) {
  onednn_own_desc src = onednn_describe(net, rank, in, 1), wei = onednn_describe(net, rank, kernel, 1),
                  dst = onednn_describe(net, 2, out, 1), add = onednn_describe(net, 1, out + 1, 1);
  dnnl_primitive_attr_t attr = onednn_end_tail(net, tail);
  dnnl_primitive_desc_t made = NULL;
  if (!net->failed) {
    onednn_desc bias = tail->bias.memory ? ONEDNN_DESC(add) : NULL;
#if DNNL_VERSION_MAJOR >= 3
    const dnnl_status_t status = dnnl_inner_product_forward_primitive_desc_create(
        &made, net->engine, dnnl_forward_inference, src, wei, bias, dst, attr);
#else
    dnnl_inner_product_desc_t wanted;
    dnnl_status_t status =
        dnnl_inner_product_forward_desc_init(&wanted, dnnl_forward_inference, &src, &wei, bias, &dst);
    if (status == dnnl_success) status = dnnl_primitive_desc_create(&made, &wanted, attr, net->engine, NULL);
#endif
    onednn_ok(net, status, "oneDNN has no such product");
  }
  if (attr) dnnl_primitive_attr_destroy(attr);
  ONEDNN_FREE_DESC(src), ONEDNN_FREE_DESC(wei), ONEDNN_FREE_DESC(dst), ONEDNN_FREE_DESC(add);
  return onednn_weighted(net, tail, made, data, weights);
}

/* The call of a primitive of one or two operands. */
ONEDNN_FUNCTION onednn_value onednn_simple(onednn_net* net, dnnl_primitive_desc_t made, onednn_value left,
                                           const onednn_value* right, onednn_desc result) {
  onednn_call call = {NULL, {{0, NULL}}, 0};
  const onednn_value out = onednn_memory(net, result, DNNL_MEMORY_ALLOCATE, 0);
  onednn_bind(&call, DNNL_ARG_SRC_0, left);
  if (right) onednn_bind(&call, DNNL_ARG_SRC_1, *right);
  onednn_bind(&call, DNNL_ARG_DST, out);
  onednn_add_call(net, made, call, 0);
  return out;
}

ONEDNN_FUNCTION onednn_value onednn_pool2d(onednn_net* net, dnnl_alg_kind_t kind, onednn_value data, const int64_t* out,
                                           const int64_t* window, onednn_window w) {
  onednn_own_desc dst = onednn_describe(net, 4, out, 1);
  dnnl_primitive_desc_t made = NULL;
  onednn_value result = {NULL, 0};
  const dnnl_dims_t taps = {window[0], window[1]};
  if (!net->failed) {
#if DNNL_VERSION_MAJOR >= 3
    const dnnl_status_t status = dnnl_pooling_forward_primitive_desc_create(&made, net->engine, dnnl_forward_inference,
                                                                            kind, onednn_desc_of(data), dst, w.strides,
                                                                            taps, w.gaps, w.before, w.after, NULL);
#else
    dnnl_pooling_desc_t wanted;
    dnnl_status_t status = dnnl_pooling_forward_desc_init(&wanted, dnnl_forward_inference, kind, onednn_desc_of(data),
                                                          &dst, w.strides, taps, w.before, w.after);
    if (status == dnnl_success) status = dnnl_primitive_desc_create(&made, &wanted, NULL, net->engine, NULL);
#endif
    if (onednn_ok(net, status, "oneDNN has no such pool"))
      result = onednn_simple(net, made, data, NULL, dnnl_primitive_desc_query_md(made, dnnl_query_dst_md, 0));
  }
  ONEDNN_FREE_DESC(dst);
  return result;
}

ONEDNN_FUNCTION onednn_value onednn_softmax(onednn_net* net, onednn_value data, int axis) {
  dnnl_primitive_desc_t made = NULL;
  if (net->failed) return data;
#if DNNL_VERSION_MAJOR >= 3
  const dnnl_status_t status =
      dnnl_softmax_forward_primitive_desc_create(&made, net->engine, dnnl_forward_inference, dnnl_softmax_accurate,
                                                 onednn_desc_of(data), onednn_desc_of(data), axis, NULL);
#else
  dnnl_softmax_desc_t wanted;
  dnnl_status_t status = dnnl_softmax_forward_desc_init(&wanted, dnnl_forward_inference, onednn_desc_of(data), axis);
  if (status == dnnl_success) status = dnnl_primitive_desc_create(&made, &wanted, NULL, net->engine, NULL);
#endif
  return onednn_ok(net, status, "oneDNN has no such softmax")
             ? onednn_simple(net, made, data, NULL, onednn_desc_of(data))
             : data;
}

ONEDNN_FUNCTION onednn_value onednn_eltwise(onednn_net* net, dnnl_alg_kind_t kind, onednn_value data, float alpha,
                                            float beta) {
  dnnl_primitive_desc_t made = NULL;
  if (net->failed) return data;
#if DNNL_VERSION_MAJOR >= 3
  const dnnl_status_t status = dnnl_eltwise_forward_primitive_desc_create(
      &made, net->engine, dnnl_forward_inference, kind, onednn_desc_of(data), onednn_desc_of(data), alpha, beta, NULL);
#else
  dnnl_eltwise_desc_t wanted;
  dnnl_status_t status =
      dnnl_eltwise_forward_desc_init(&wanted, dnnl_forward_inference, kind, onednn_desc_of(data), alpha, beta);
  if (status == dnnl_success) status = dnnl_primitive_desc_create(&made, &wanted, NULL, net->engine, NULL);
#endif
  return onednn_ok(net, status, "oneDNN has no such function")
             ? onednn_simple(net, made, data, NULL, onednn_desc_of(data))
             : data;
}

/* `right`: of the same sizes, or seen with as many axes. */
ONEDNN_FUNCTION onednn_value onednn_binary(onednn_net* net, dnnl_alg_kind_t kind, onednn_value left, onednn_value right,
                                           int same_sizes) {
  dnnl_primitive_desc_t made = NULL;
  if (net->failed) return left;
  if (same_sizes) right = onednn_laid_out(net, right, onednn_desc_of(left));
  if (net->failed) return left;
#if DNNL_VERSION_MAJOR >= 3
  const dnnl_status_t status = dnnl_binary_primitive_desc_create(&made, net->engine, kind, onednn_desc_of(left),
                                                                 onednn_desc_of(right), onednn_desc_of(left), NULL);
#else
  dnnl_binary_desc_t wanted;
  dnnl_status_t status =
      dnnl_binary_desc_init(&wanted, kind, onednn_desc_of(left), onednn_desc_of(right), onednn_desc_of(left));
  if (status == dnnl_success) status = dnnl_primitive_desc_create(&made, &wanted, NULL, net->engine, NULL);
#endif
  return onednn_ok(net, status, "oneDNN has no such arithmetic")
             ? onednn_simple(net, made, left, &right, onednn_desc_of(left))
             : left;
}

/* A result: the value in row-major order, in memory that each run is given. */
ONEDNN_FUNCTION onednn_value onednn_result(onednn_net* net, onednn_value value, int rank, const int64_t* sizes) {
  const onednn_value out = onednn_argument(net, rank, sizes);
  onednn_copy(net, value, out, 0);
  return out;
}

ONEDNN_FUNCTION void onednn_set(onednn_net* net, onednn_value value, void* data) {
  if (!net->failed) onednn_ok(net, dnnl_memory_set_data_handle(value.memory, data), "oneDNN refuses an address");
}

/* Runs all primitives; null, or what failed. */
static const char* onednn_run(onednn_net* net) {
  if (net->failed) return net->failed;
  for (size_t i = 0; i < net->view_count; ++i) {
    void* data = NULL;
    dnnl_memory_get_data_handle(net->views[i].of, &data);
    dnnl_memory_set_data_handle(net->views[i].view, data);
  }
  for (size_t i = 0; i < net->call_count; ++i)
    if (dnnl_primitive_execute(net->calls[i].primitive, net->stream, net->calls[i].count, net->calls[i].arguments) !=
        dnnl_success)
      return "a primitive of oneDNN failed";
  return dnnl_stream_wait(net->stream) == dnnl_success ? NULL : "oneDNN's stream failed";
}
