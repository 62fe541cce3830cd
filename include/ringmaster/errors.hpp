#pragma once

#include <ringmaster/version.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace ringmaster {

/// Every error code with its meaning. Codes travel on the wire: only append. Enumerators, names, meanings and tests are
/// generated from this table.
#define RINGMASTER_ERRORS(X)                                                                                           \
  X(ok, "no error; reserved by CAF")                                                                                   \
  X(invalid_argument, "the request makes no sense, whatever the state")                                                \
  X(out_of_range, "an address range is not within the device's memory")                                                \
  X(out_of_memory, "the allocator has no block of that size")                                                          \
  X(unknown_device, "the device never joined, or it has died or left")                                                 \
  X(unknown_communicator, "the communicator never existed, or was destroyed")                                          \
  X(unknown_stream, "the stream was never created, or its result was requested too late")                              \
  X(too_few_devices, "a communicator wants more devices than are free")                                                \
  X(group_misuse, "GroupStart within a group, or GroupEnd outside of one")                                             \
  X(size_mismatch, "the two ends of a transfer give different sizes")                                                  \
  X(timed_out, "a limit passed; the message says what was waited for")                                                 \
  X(device_lost, "a device died, hung or was cut off")                                                                 \
  X(killed_on_request, "fault injection ended this actor")                                                             \
  X(aborted, "the communicator was aborted or destroyed")                                                              \
  X(io_error, "the operating system refused")                                                                          \
  X(corrupt, "stored bytes are not what was written")                                                                  \
  X(wrong_version, "stored in another format, or sent in another protocol, than this version's")                       \
  X(in_use, "it belongs to a running process")                                                                         \
  X(invalid_config, "a configuration value is not allowed")                                                            \
  X(gave_up, "a supervisor restarted a child too often")                                                               \
  X(refused, "another process refused; its message says why")                                                          \
  X(too_large, "over the limit of a size, which the message names")                                                    \
  X(too_many, "over the limit of a number, which the message names; wait, or end some")                                \
  X(suspected, "ended by the coordinator, because it was silent or late")                                              \
  X(unreachable, "no process listens there, or the network is cut; the message names both ends")                       \
  X(not_ringmaster, "what answers there is no process of Ringmaster")                                                  \
  X(no_space, "the disk, a quota or the limit on file sizes has no room")                                              \
  X(unauthenticated, "the two ends of a connection do not have the same secret; the message says what to do")          \
  X(permission_denied, "the role of this process does not allow it; the message names the role that does")

/// Code of an error. A program that must distinguish errors compares codes, never messages.
enum class errc : uint8_t {
#define RINGMASTER_ENUMERATOR(name, meaning) name,
  RINGMASTER_ERRORS(RINGMASTER_ENUMERATOR)
#undef RINGMASTER_ENUMERATOR
};

/// Number of codes, `errc::ok` included.
constexpr uint8_t errc_count = 0
#define RINGMASTER_ONE(name, meaning) +1
  RINGMASTER_ERRORS(RINGMASTER_ONE)
#undef RINGMASTER_ONE
  ;

/// Name of the code, as in the table; "errc_N" for a number that is not in it.
std::string to_string(errc code);

/// Meaning of the code, as in the table; empty for a number that is not in it.
std::string_view meaning_of(errc code);

} // namespace ringmaster

namespace RINGMASTER_API {

/// Why a call failed.
struct error {
  errc code = errc::refused; ///< What a program compares.
  /// What happened, to which rank and device, and what would be right. For people: do not parse it.
  std::string message{};
};

/// Thrown by `expected::value` where there is no value.
class failure : public std::runtime_error {
public:
  /// An exception with the message of `why`.
  explicit failure(error why) : std::runtime_error(why.message), why_(std::move(why)) {}
  /// The error that the call returned.
  const error& why() const noexcept { return why_; }

private:
  error why_;
};

/// The result of a call that can fail: a value or an error, as C++23's std::expected. Errors are returned, and become
/// exceptions only in `value`.
template <class T>
class [[nodiscard]] expected {
public:
  /// A result that succeeded.
  expected(T x) : content_(std::in_place_index<0>, std::move(x)) {}
  /// A result that failed.
  expected(struct error why) : content_(std::in_place_index<1>, std::move(why)) {}

  /// Whether there is a value.
  explicit operator bool() const noexcept { return content_.index() == 0; }
  /// Whether there is a value.
  bool has_value() const noexcept { return content_.index() == 0; }
  /// The value. Throws `failure` where there is none.
  T& value() & {
    check();
    return std::get<0>(content_);
  }
  /// The value. Throws `failure` where there is none.
  const T& value() const& {
    check();
    return std::get<0>(content_);
  }
  /// The value. Throws `failure` where there is none.
  T value() && {
    check();
    return std::move(std::get<0>(content_));
  }
  /// The value. Throws `failure` where there is none.
  T& operator*() & { return value(); }
  /// The value. Throws `failure` where there is none.
  const T& operator*() const& { return value(); }
  /// The value. Throws `failure` where there is none.
  T operator*() && { return std::move(*this).value(); }
  /// The value's member. Throws `failure` where there is no value.
  T* operator->() { return &value(); }
  /// The value's member. Throws `failure` where there is no value.
  const T* operator->() const { return &value(); }
  /// The error. Requires that there is no value.
  const struct error& error() const { return std::get<1>(content_); }

private:
  void check() const {
    if (content_.index() != 0)
      throw failure{std::get<1>(content_)};
  }

  std::variant<T, struct error> content_;
};

/// The result of a call that can fail and returns nothing.
template <>
class [[nodiscard]] expected<void> {
public:
  /// A result that succeeded.
  expected() = default;
  /// A result that failed.
  expected(struct error why) : error_(std::move(why)), failed_(true) {}

  /// Whether the call succeeded.
  explicit operator bool() const noexcept { return !failed_; }
  /// Whether the call succeeded.
  bool has_value() const noexcept { return !failed_; }
  /// Throws `failure` where the call failed.
  void value() const {
    if (failed_)
      throw failure{error_};
  }
  /// The error. Requires that the call failed.
  const struct error& error() const { return error_; }

private:
  struct error error_ {};
  bool failed_ = false;
};

} // namespace RINGMASTER_API
