#pragma once

#include "actors/links/tls_channel.hpp"

#include <caf/io/network/rw_state.hpp>
#include <caf/io/network/stream_impl.hpp>
#include <caf/policy/tcp.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace ringmaster {

/// How a stream of CAF's reads and writes its socket: with TLS, or as CAF does.
class stream_policy {
public:
  using rw_state = caf::io::network::rw_state;
  using native_socket = caf::io::network::native_socket;

  /// `tls`: null for a connection that is not encrypted.
  explicit stream_policy(tls_channel_ptr tls) : tls_(std::move(tls)) {}

  rw_state read_some(size_t& result, native_socket socket, void* to, size_t bytes) {
    if (tls_ == nullptr)
      return caf::policy::tcp::read_some(result, socket, to, bytes);
    result = 0;
    if (bytes == 0)
      return rw_state::indeterminate;
    return done(tls_->receive_some(socket, {static_cast<std::byte*>(to), bytes}), result);
  }

  rw_state write_some(size_t& result, native_socket socket, const void* from, size_t bytes) {
    if (tls_ == nullptr)
      return caf::policy::tcp::write_some(result, socket, from, bytes);
    constexpr size_t turn_bytes = 1u << 20; // then it is other connections' turn
    result = 0;
    std::span rest{static_cast<const std::byte*>(from), bytes};
    while (!rest.empty() && result < turn_bytes) {
      size_t count = 0;
      const auto state = done(tls_->send(socket, rest), count);
      if (state != rw_state::success)
        return state;
      if (count == 0)
        break;
      result += count;
      rest = rest.subspan(count);
    }
    return rw_state::success;
  }

  /// What was taken from the socket wakes no one again.
  bool must_read_more(native_socket, size_t) const { return tls_ != nullptr && tls_->has_more(); }

private:
  static rw_state done(ssize_t count, size_t& result) {
    if (count > 0)
      result = static_cast<size_t>(count);
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR)) ? rw_state::success : rw_state::failure;
  }

  tls_channel_ptr tls_;
};

class encrypted_stream final : public caf::io::network::stream {
public:
  encrypted_stream(caf::io::network::default_multiplexer& backend, int socket, tls_channel_ptr tls)
    : stream(backend, socket), policy_(std::move(tls)) {}

  void handle_event(caf::io::network::operation what) override { handle_event_impl(what, policy_); }
  bool has_more() const { return policy_.must_read_more(fd(), 0); }

private:
  stream_policy policy_;
};

} // namespace ringmaster
