// SPDX-License-Identifier: Apache-2.0
// oneDNN's primitives by one interface: version 3 describes a primitive in one step where version 2 takes two.
#pragma once
#include <dnnl.hpp>

namespace tilewright::plugins::onednn {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

#if DNNL_VERSION_MAJOR >= 3
inline Dims dims_of(const Desc& desc) { return desc.get_dims(); }
inline void append_eltwise(dnnl::post_ops* post, dnnl::algorithm kind, float alpha, float beta) {
  post->append_eltwise(kind, alpha, beta);
}
#else
inline Dims dims_of(const Desc& desc) { return desc.dims(); }
inline void append_eltwise(dnnl::post_ops* post, dnnl::algorithm kind, float alpha, float beta) {
  post->append_eltwise(1.0f, kind, alpha, beta);
}
#endif

// What a sliding window does; `dilation` counts the gaps between taps.
struct Window {
  Dims strides, dilation, before, after;
};

// `bias`: null if there is none.
inline dnnl::convolution_forward::primitive_desc convolution(const dnnl::engine& engine, const Desc& in,
                                                             const Desc& weights, const Desc* bias, const Desc& out,
                                                             const Window& w, const dnnl::primitive_attr& attr) {
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto direct = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  if (bias == nullptr) return {engine, kind, direct, in, weights, out, w.strides, w.dilation, w.before, w.after, attr};
  return {engine, kind, direct, in, weights, *bias, out, w.strides, w.dilation, w.before, w.after, attr};
#else
  using Forward = dnnl::convolution_forward;
  const Forward::desc wanted =
      bias == nullptr ? Forward::desc(kind, direct, in, weights, out, w.strides, w.dilation, w.before, w.after)
                      : Forward::desc(kind, direct, in, weights, *bias, out, w.strides, w.dilation, w.before, w.after);
  return Forward::primitive_desc(wanted, attr, engine);
#endif
}

inline dnnl::inner_product_forward::primitive_desc inner_product(const dnnl::engine& engine, const Desc& in,
                                                                 const Desc& weights, const Desc* bias, const Desc& out,
                                                                 const dnnl::primitive_attr& attr) {
  const auto kind = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
  if (bias == nullptr) return {engine, kind, in, weights, out, attr};
  return {engine, kind, in, weights, *bias, out, attr};
#else
  using Forward = dnnl::inner_product_forward;
  const Forward::desc wanted =
      bias == nullptr ? Forward::desc(kind, in, weights, out) : Forward::desc(kind, in, weights, *bias, out);
  return Forward::primitive_desc(wanted, attr, engine);
#endif
}

inline dnnl::pooling_forward::primitive_desc pooling(const dnnl::engine& engine, dnnl::algorithm kind, const Desc& in,
                                                     const Desc& out, const Dims& window, const Window& w) {
  const auto inference = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
  return {engine, inference, kind, in, out, w.strides, window, w.dilation, w.before, w.after};
#else
  return dnnl::pooling_forward::primitive_desc({inference, kind, in, out, w.strides, window, w.before, w.after},
                                               engine);
#endif
}

inline dnnl::softmax_forward::primitive_desc softmax(const dnnl::engine& engine, const Desc& desc, int axis) {
  const auto inference = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
  return {engine, inference, dnnl::algorithm::softmax_accurate, desc, desc, axis};
#else
  return dnnl::softmax_forward::primitive_desc({inference, desc, axis}, engine);
#endif
}

inline dnnl::eltwise_forward::primitive_desc eltwise(const dnnl::engine& engine, dnnl::algorithm kind, const Desc& desc,
                                                     float alpha, float beta) {
  const auto inference = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
  return {engine, inference, kind, desc, desc, alpha, beta};
#else
  return dnnl::eltwise_forward::primitive_desc({inference, kind, desc, alpha, beta}, engine);
#endif
}

inline dnnl::binary::primitive_desc binary(const dnnl::engine& engine, dnnl::algorithm kind, const Desc& left,
                                           const Desc& right, const Desc& out) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, kind, left, right, out};
#else
  return dnnl::binary::primitive_desc({kind, left, right, out}, engine);
#endif
}

}  // namespace tilewright::plugins::onednn
