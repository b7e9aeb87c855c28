// SPDX-License-Identifier: Apache-2.0
// Errors as values. A Diagnostic says what went wrong, where, and what to do; Result carries a value or one.
#pragma once
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace tilewright {

// All user-visible errors: code, name, one-line meaning. docs/errors/ has a page for each.
// clang-format off
#define TW_ERROR_CODES(X)                                                              \
  X(101, InvalidArgument, "a command or call was given something it cannot use")        \
  X(102, FileNotFound, "a file does not exist or cannot be read")                       \
  X(103, CannotWrite, "a file cannot be written (permissions, full disk)")              \
  X(104, LimitExceeded, "an input is larger than the limits allow")                     \
  X(201, MalformedModel, "a model file is damaged or breaks its format's rules")        \
  X(202, UnsupportedOp, "a model uses operators that cannot be compiled yet")           \
  X(203, UnsupportedModel, "a model uses a feature that cannot be compiled yet")        \
  X(204, FreeDimension, "a model has dimensions whose sizes must be given")             \
  X(301, TypeMismatch, "operand shapes or types do not agree")                          \
  X(302, UnknownOp, "no operator has this name")                                        \
  X(303, ParseError, "a text does not follow its grammar")                              \
  X(304, VerifyFailed, "a module breaks the rules of its level")                        \
  X(305, UnknownPass, "no pass has this name")                                          \
  X(401, UnknownTarget, "a target string names something unknown")                      \
  X(402, CodegenFailed, "code generation failed")                                       \
  X(403, LinkFailed, "linking the artifact failed")                                     \
  X(501, BadArtifact, "an artifact is damaged or not an artifact")                      \
  X(502, ArtifactVersion, "an artifact was written by an incompatible version")         \
  X(503, CpuMismatch, "an artifact needs CPU features this machine lacks")              \
  X(504, UnknownInput, "no input or output has this name or index")                     \
  X(505, ShapeMismatch, "a tensor has another shape than the model was compiled for")   \
  X(506, DtypeMismatch, "a tensor has another dtype than the model was compiled for")   \
  X(507, UnknownFunction, "no function or module key has this name")                    \
  X(601, AccuracyExceeded, "a result left its error budget")                            \
  X(602, TimeLimit, "a run exceeded its time or memory limit")                          \
  X(603, Interrupted, "the user interrupted the work")                                  \
  X(701, ConnectionLost, "the other end of a session went away")                       \
  X(703, ProtocolError, "the other side of a connection breaks its protocol")           \
  X(704, RemoteError, "a function of a remote machine failed")                          \
  X(901, Internal, "a bug in Tilewright")
// clang-format on

enum class ErrorCode : int {
#define TW_CODE(number, name, text) k##name = number,
  TW_ERROR_CODES(TW_CODE)
#undef TW_CODE
};

// The code's name, for instance "MalformedModel".
const char* error_name(ErrorCode code);

struct Diagnostic {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // one sentence: what is wrong, with names and numbers
  std::string where;    // file, node, op, line; may be empty
  std::string hint;     // what to do; may be empty

  // Defined in result.cc, copies and moves too: three strings made and destroyed in place at each of thousands of
  // errors are a tenth of what the compiler's rooms take to compile.
  Diagnostic();
  Diagnostic(ErrorCode c, std::string m);
  Diagnostic(ErrorCode c, std::string m, std::string w);
  Diagnostic(ErrorCode c, std::string m, std::string w, std::string h);
  Diagnostic(const Diagnostic&);
  Diagnostic(Diagnostic&&) noexcept;
  Diagnostic& operator=(const Diagnostic&);
  Diagnostic& operator=(Diagnostic&&) noexcept;
  ~Diagnostic();
  // "error[E201 MalformedModel]: where: message\n  hint: ..." (no trailing newline)
  std::string str() const;
  // Adds a location, unless it already has one.
  Diagnostic at(std::string place) &&;
};

// Thrown by TW_ICHECK only, and caught at the library's entry points: a defect of the compiler, not a user's error.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};
[[noreturn, gnu::cold]] void internal_error(const char* file, int line, const std::string& what);
// `condition` and `detail` in one sentence.
[[noreturn, gnu::cold]] void check_failed(const char* file, int line, const char* condition,
                                          const std::string& detail = {});
#define TW_ICHECK(cond, ...)                                                                       \
  do {                                                                                             \
    if (!(cond)) ::tilewright::check_failed(__FILE__, __LINE__, #cond __VA_OPT__(, ) __VA_ARGS__); \
  } while (0)

// The diagnostic of a failed Result, or none: one pointer, so that handing an error on is handing a pointer on.
class Failure {
 public:
  Failure() = default;
  explicit Failure(Diagnostic diagnostic);
  Failure(const Failure& other);
  Failure(Failure&& other) noexcept : diagnostic_(std::exchange(other.diagnostic_, nullptr)) {}
  Failure& operator=(Failure other) noexcept {
    std::swap(diagnostic_, other.diagnostic_);
    return *this;
  }
  ~Failure() {
    if (diagnostic_) destroy();
  }
  explicit operator bool() const { return diagnostic_ != nullptr; }
  Diagnostic& operator*() const { return *diagnostic_; }
  [[noreturn, gnu::cold]] void raise() const;  // InternalError with the diagnostic's text

 private:
  void destroy();
  Diagnostic* diagnostic_ = nullptr;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Diagnostic diagnostic) : failure_(std::move(diagnostic)) {}
  Result(Failure failure) : failure_(std::move(failure)) {}
  bool ok() const { return !failure_; }
  explicit operator bool() const { return ok(); }
  // The value; on a failed Result, throws InternalError with the diagnostic's text.
  T& value() & {
    require();
    return *value_;
  }
  const T& value() const& {
    require();
    return *value_;
  }
  T&& value() && {
    require();
    return *std::move(value_);
  }
  T* operator->() { return &value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const Diagnostic& error() const& { return *failure_; }
  Diagnostic&& error() && { return std::move(*failure_); }
  Failure failure() && { return std::move(failure_); }

 private:
  void require() const {
    if (failure_) failure_.raise();
  }
  Failure failure_;
  std::optional<T> value_;
};

struct Ok {};
// Success or an error: `Status f() { ...; return Ok{}; }`
using Status = Result<Ok>;

// auto x = TW_TRY(f());  // the value, or return f's error from this function
#define TW_TRY(...)                                               \
  ({                                                              \
    auto tw_result_ = (__VA_ARGS__);                              \
    if (!tw_result_.ok()) return std::move(tw_result_).failure(); \
    std::move(tw_result_).value();                                \
  })
#define TW_TRY_STATUS(...)                                        \
  do {                                                            \
    auto tw_result_ = (__VA_ARGS__);                              \
    if (!tw_result_.ok()) return std::move(tw_result_).failure(); \
  } while (0)

}  // namespace tilewright
