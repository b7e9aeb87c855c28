// SPDX-License-Identifier: Apache-2.0
#include "module.h"

#include <cstring>
#include <mutex>
#include <stdexcept>

namespace accelerator {
namespace {

constexpr char kMark[8] = {'V', 'E', 'C', 'U', 'N', 'I', 'T', '1'};

class Writer {
 public:
  void number(int32_t v) { out_.append(reinterpret_cast<const char*>(&v), sizeof v); }
  void raw(const void* data, size_t bytes) { out_.append(static_cast<const char*>(data), bytes); }
  std::string out_;
};

// Bytes from a file are checked like any other input: every length against what is left.
class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  int32_t number() {
    int32_t v = 0;
    raw(&v, sizeof v);
    return v;
  }
  void raw(void* to, size_t bytes) {
    if (bytes > bytes_.size() - at_) throw std::runtime_error("the vector unit's program ends early");
    std::memcpy(to, bytes_.data() + at_, bytes);
    at_ += bytes;
  }
  size_t count(size_t item_bytes) {
    const int32_t n = number();
    if (n < 0 || static_cast<size_t>(n) > (bytes_.size() - at_) / item_bytes)
      throw std::runtime_error("the vector unit's program has an impossible length");
    return static_cast<size_t>(n);
  }
  bool finished() const { return at_ == bytes_.size(); }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

class VectorUnitModule : public tilewright::ModuleKind {
 public:
  explicit VectorUnitModule(Program program) : shared_(std::make_shared<Shared>(std::move(program))) {}
  std::string type_key() const override { return kTypeKey; }

  tilewright::Function get_function(const std::string& name) override {
    if (name != shared_->program.symbol) return {};
    return tilewright::Function::of([shared = shared_](tilewright::Args args) -> tilewright::Value {
      const Program& program = shared->program;
      if (args.size() != program.counts.size())
        throw std::runtime_error(program.symbol + " takes " + std::to_string(program.counts.size()) + " tensors, not " +
                                 std::to_string(args.size()));
      std::vector<float*> operands;
      for (size_t i = 0; i < args.size(); ++i) {
        const DLTensor& t = args[i].tensor();
        int64_t count = 1;
        for (int d = 0; d < t.ndim; ++d) count *= t.shape[d];
        if (t.dtype.code != kDLFloat || t.dtype.bits != 32 || count != program.counts[i])
          throw std::runtime_error("tensor " + std::to_string(i) + " of " + program.symbol + " must have " +
                                   std::to_string(program.counts[i]) + " floats");
        operands.push_back(reinterpret_cast<float*>(static_cast<char*>(t.data) + t.byte_offset));
      }
      std::lock_guard lock(shared->mutex);  // one program at a time on the device
      shared->unit.run(operands);
      return {};
    });
  }

  std::string save() const override {
    const Program& p = shared_->program;
    Writer w;
    w.raw(kMark, sizeof kMark);
    w.number(static_cast<int32_t>(p.symbol.size()));
    w.raw(p.symbol.data(), p.symbol.size());
    w.number(static_cast<int32_t>(p.counts.size()));
    for (int32_t count : p.counts) w.number(count);
    w.number(p.memory);
    w.number(static_cast<int32_t>(p.constants.size()));
    w.raw(p.constants.data(), p.constants.size() * sizeof(float));
    w.number(static_cast<int32_t>(p.code.size()));
    w.raw(p.code.data(), p.code.size() * sizeof(Instruction));
    return w.out_;
  }

 private:
  struct Shared {
    explicit Shared(Program p) : program(std::move(p)), unit(program) {}
    Program program;
    VectorUnit unit;
    std::mutex mutex;
  };
  std::shared_ptr<Shared> shared_;  // functions outlive the module
};

}  // namespace

tilewright::Module make_module(Program program) {
  if (std::string wrong = check(program); !wrong.empty())
    throw std::runtime_error("the vector unit refuses '" + program.symbol + "': " + wrong);
  return tilewright::Module::of(std::make_unique<VectorUnitModule>(std::move(program)));
}

tilewright::Module load_module(const std::string& bytes) {
  Reader in(bytes);
  char mark[sizeof kMark];
  in.raw(mark, sizeof mark);
  if (std::memcmp(mark, kMark, sizeof mark) != 0) throw std::runtime_error("this is no program for the vector unit");
  Program p;
  p.symbol.resize(in.count(1));
  in.raw(p.symbol.data(), p.symbol.size());
  p.counts.resize(in.count(sizeof(int32_t)));
  for (int32_t& count : p.counts) count = in.number();
  p.num_operands = static_cast<int32_t>(p.counts.size());
  p.memory = in.number();
  p.constants.resize(in.count(sizeof(float)));
  in.raw(p.constants.data(), p.constants.size() * sizeof(float));
  p.code.resize(in.count(sizeof(Instruction)));
  in.raw(p.code.data(), p.code.size() * sizeof(Instruction));
  if (!in.finished()) throw std::runtime_error("the vector unit's program is followed by something else");
  return make_module(std::move(p));
}

void register_loader() {
  tilewright::register_function("runtime.module.loadbinary_vecunit",
                                [](tilewright::Args args) { return tilewright::Value(load_module(args[0].bytes())); });
}

}  // namespace accelerator
