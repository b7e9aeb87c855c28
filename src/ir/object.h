// SPDX-License-Identifier: Apache-2.0
// Shared immutable nodes: intrusive reference counts and handles. Releasing a chain of a million nodes does not
// recurse: nodes that reach count zero while another is being destroyed are queued.
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <utility>

namespace tilewright {

class Node {
 public:
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node() = default;

 private:
  template <class T>
  friend class Ref;
  static void drop(const Node* node);  // one reference fewer; the last one destroys, without recursion
  mutable std::atomic<uint32_t> references_{0};
};

// A counted pointer to an immutable node. Comparison and hashing are by identity.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(const T* node) : node_(node) { retain(); }
  Ref(const Ref& other) : node_(other.node_) { retain(); }
  Ref(Ref&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<const U*, const T*> Ref(const Ref<U>& other) : node_(other.get()) { retain(); }
  ~Ref() {
    if (node_) Node::drop(node_);
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  const T* get() const { return node_; }
  const T* operator->() const { return node_; }
  const T& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }
  bool operator==(const Ref& other) const { return node_ == other.node_; }

 private:
  void retain() const {
    if (node_) node_->references_.fetch_add(1, std::memory_order_relaxed);
  }
  const T* node_ = nullptr;
};

template <class T, class... Args>
Ref<T> make_node(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace tilewright

template <class T>
struct std::hash<tilewright::Ref<T>> {
  size_t operator()(const tilewright::Ref<T>& ref) const { return std::hash<const void*>()(ref.get()); }
};
