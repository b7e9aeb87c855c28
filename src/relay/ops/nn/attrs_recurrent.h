// SPDX-License-Identifier: Apache-2.0
// Attributes of recurrent layers, which stay whole so that one kernel computes a layer (ours; ONNX's semantics).
#pragma once
#include "ir/attrs.h"

namespace tilewright::relay {

// nn.lstm(X, W, R, B, h0, c0 [, P] [, lengths]) -> (Y, Yh, Yc) nn.gru(X, W, R, B, h0 [, lengths]) and nn.rnn(...) ->
// (Y, Yh) X (T, N, I); W (D, G*H, I); R (D, G*H, H); B (D, 2*G*H); h0, c0 (D, N, H); P (D, 3*H); lengths (N) int32.
// nn.lstm_scan(X, R, h0, c0 [, P] [, lengths]), nn.gru_scan(X, R, B, h0 [, lengths]), nn.rnn_scan(X, R, h0 [,
// lengths]): the recurrence alone, where X (T, N, D*G*H) holds the input products plus biases; B (D, H) is added to the
// state's product in the third gate. Y (T, D, N, H). Gate order: LSTM i o f c; GRU z r h. D is 2 when bidirectional.
struct RecurrentAttrs : Attrs<RecurrentAttrs> {
  static constexpr const char* kName = "relay.attrs.RecurrentAttrs";
  int64_t hidden_size = 0;
  std::string direction = "forward";
  std::vector<std::string> activations;
  std::vector<double> activation_alpha, activation_beta;
  double clip = 0;
  bool linear_before_reset = false, input_forget = false, has_peephole = false, has_lengths = false;
  template <class V>
  void fields(V& v) {
    v("hidden_size", hidden_size);
    v("direction", direction, "forward, reverse or bidirectional");
    v("activations", activations, "ONNX names, per direction; empty: the defaults");
    v("activation_alpha", activation_alpha, "one per activation, or empty: ONNX defaults");
    v("activation_beta", activation_beta);
    v("clip", clip, "clip cell inputs to [-clip, clip]; 0: do not");
    v("linear_before_reset", linear_before_reset, "GRU");
    v("input_forget", input_forget, "LSTM: couple the input and forget gates");
    v("has_peephole", has_peephole, "operand P follows");
    v("has_lengths", has_lengths, "operand lengths follows");
  }
};

}  // namespace tilewright::relay
