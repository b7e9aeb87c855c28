// SPDX-License-Identifier: Apache-2.0
#include "base/formats/weights_file.h"

#include <algorithm>
#include <cstring>

#include "base/byte_order.h"
#include "base/checked.h"
#include "base/format.h"
#include "base/hash.h"

namespace tilewright {
namespace {

constexpr uint64_t kWeightsVersion = 1;
constexpr uint64_t kEntryBytes = 4 * 8;
constexpr uint64_t kHeadHashed = 5 * 8;  // mark, version, place, count and hash of the list

Diagnostic bad_weights(std::string what) {
  return Diagnostic(ErrorCode::kBadArtifact, std::move(what), {},
                    "put the weights file back that the model was compiled with, or compile the model again");
}

}  // namespace

const StoredWeight* WeightsList::at(uint64_t offset) const {
  const auto it = std::lower_bound(weights.begin(), weights.end(), offset,
                                   [](const StoredWeight& w, uint64_t o) { return w.offset < o; });
  return it != weights.end() && it->offset == offset ? &*it : nullptr;
}

bool is_weights_file(std::span<const std::byte> file) {
  return file.size() >= sizeof kWeightsMagic && std::memcmp(file.data(), kWeightsMagic, sizeof kWeightsMagic) == 0;
}

Result<WeightsList> read_weights_list(std::span<const std::byte> file) {
  if (!is_weights_file(file)) return bad_weights("this is not a file of weights: it lacks the mark of one");
  TW_TRY_STATUS(check_byte_order("the file of weights"));
  if (file.size() < kWeightsHeadBytes) return bad_weights("the weights file is cut off");
  ByteReader head(file.first(kWeightsHeadBytes));
  head.take(sizeof kWeightsMagic);
  const auto version = head.read<uint64_t>(), offset = head.read<uint64_t>(), count = head.read<uint64_t>(),
             list_hash = head.read<uint64_t>();
  if (head.read<uint64_t>() != hash_bytes(file.data(), kHeadHashed))
    return bad_weights("the head of the weights file does not match its check sum");
  if (version != kWeightsVersion)
    return Diagnostic(ErrorCode::kArtifactVersion,
                      format("the weights file has format {}, this version reads {}", version, kWeightsVersion), {},
                      "compile the model again with the version you run");
  if (offset > file.size() || count > (file.size() - offset) / kEntryBytes)
    return bad_weights(
        format("the weights file is cut off: it has {} bytes, and its list begins at byte {}", file.size(), offset));
  const auto bytes = file.subspan(offset, count * kEntryBytes);
  if (hash_bytes(bytes.data(), bytes.size()) != list_hash)
    return bad_weights("the list of the weights file does not match its check sum");
  ByteReader in(bytes);
  WeightsList out;
  for (uint64_t i = 0; i < count; ++i) {
    StoredWeight w;
    w.offset = in.read<uint64_t>(), w.bytes = in.read<uint64_t>();
    w.hash = in.read<uint64_t>(), w.bits = in.read<uint64_t>();
    if (w.offset % kWeightsAlignment != 0 || w.offset < out.data_end || w.offset > offset ||
        w.bytes > offset - w.offset)
      return bad_weights(format("tensor {} of the weights file lies outside of it", i));
    out.data_end = w.offset + w.bytes;
    out.weights.push_back(w);
  }
  return out;
}

std::string write_weights_list(const WeightsList& list) {
  ByteWriter out;
  for (const StoredWeight& w : list.weights)
    for (uint64_t field : {w.offset, w.bytes, w.hash, w.bits}) out.write<uint64_t>(field);
  return out.take();
}

std::string write_weights_head(uint64_t offset, const std::string& list) {
  ByteWriter out;
  out.write_bytes(kWeightsMagic, sizeof kWeightsMagic);
  for (uint64_t field :
       {kWeightsVersion, offset, uint64_t{list.size() / kEntryBytes}, hash_bytes(list.data(), list.size())})
    out.write<uint64_t>(field);
  out.write<uint64_t>(hash_bytes(out.str().data(), out.str().size()));
  std::string head = out.take();
  head.resize(kWeightsHeadBytes, '\0');
  return head;
}

Status check_weights_content(std::span<const std::byte> file, const WeightsList& list) {
  for (size_t i = 0; i < list.weights.size(); ++i) {
    const StoredWeight& w = list.weights[i];
    if (hash_bytes(file.data() + w.offset, w.bytes, w.bits) != w.hash)
      return bad_weights(format("tensor {} of the weights file does not match its check sum", i));
  }
  return Ok{};
}

Status check_weights_of_plan(const plan::Plan& plan, const WeightsList& list) {
  for (const plan::Param& p : plan.params) {
    if (p.bytes == 0) continue;
    const StoredWeight* w = list.at(p.offset);
    if (!w || w->bytes != p.bytes || w->hash != p.hash || w->bits != p.dtype.bits)
      return bad_weights(format("the weights file does not hold '{}' as the model was compiled with it", p.name));
  }
  return Ok{};
}

}  // namespace tilewright
