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

  Diagnostic() = default;
  Diagnostic(ErrorCode c, std::string m, std::string w = {}, std::string h = {})
      : code(c), message(std::move(m)), where(std::move(w)), hint(std::move(h)) {}
  // "error[E201 MalformedModel]: where: message\n  hint: ..." (no trailing newline)
  std::string str() const;
  // Adds a location, unless it already has one.
  Diagnostic at(std::string place) &&;
};

// Thrown by TW_ICHECK only, and caught at the library's entry points: a defect of the compiler, not a user's error.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};
[[noreturn]] void internal_error(const char* file, int line, const std::string& what);
#define TW_ICHECK(cond, ...)                                                                                          \
  do {                                                                                                                \
    if (!(cond)) ::tilewright::internal_error(__FILE__, __LINE__, std::string(#cond " ") + std::string(__VA_ARGS__)); \
  } while (0)

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  Result(Diagnostic d) : v_(std::in_place_index<1>, std::move(d)) {}
  bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }
  // The value; on a failed Result, throws InternalError with the diagnostic's text.
  T& value() & {
    require();
    return std::get<0>(v_);
  }
  const T& value() const& {
    require();
    return std::get<0>(v_);
  }
  T&& value() && {
    require();
    return std::get<0>(std::move(v_));
  }
  T* operator->() { return &value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const Diagnostic& error() const& { return std::get<1>(v_); }
  Diagnostic&& error() && { return std::get<1>(std::move(v_)); }

 private:
  void require() const {
    if (!ok()) internal_error("result.h", 0, error().str());
  }
  std::variant<T, Diagnostic> v_;
};

struct Ok {};
// Success or an error: `Status f() { ...; return Ok{}; }`
using Status = Result<Ok>;

// auto x = TW_TRY(f());  // the value, or return f's error from this function
#define TW_TRY(...)                                             \
  ({                                                            \
    auto tw_result_ = (__VA_ARGS__);                            \
    if (!tw_result_.ok()) return std::move(tw_result_).error(); \
    std::move(tw_result_).value();                              \
  })
#define TW_TRY_STATUS(...)                                      \
  do {                                                          \
    auto tw_result_ = (__VA_ARGS__);                            \
    if (!tw_result_.ok()) return std::move(tw_result_).error(); \
  } while (0)

}  // namespace tilewright
