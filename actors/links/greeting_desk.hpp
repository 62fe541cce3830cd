#pragma once

#include "actors/links/sockets.hpp"
#include "actors/links/tls_channel.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "runtime/health/restart_intensity.hpp"
#include "runtime/trust/greeting.hpp"

#include <caf/expected.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// What may be spent on those that connect to one port and have not been admitted.
struct stranger_limits {
  std::chrono::milliseconds greeting = std::chrono::seconds{3}; ///< Then the connection is closed.
  size_t strangers_max = 64;                                    ///< One more takes the oldest one's place.
};

/// The greeting of all connections that one listening port accepts (runtime/trust/greeting.hpp), on one thread that
/// waits for `descriptor()` beside its other work. A stranger costs a descriptor and less than a KiB, with TLS some 100
/// KiB, and nothing that it sends is seen by anything else before it is admitted. Refused ones are closed, counted, and
/// logged once a second at most. Where too many come, the oldest goes: a process that knows the secret has greeted
/// within a round trip.
class greeting_desk {
public:
  struct admitted {
    open_socket socket;
    session with;
    tls_channel_ptr tls; ///< Null: the connection is not encrypted.
  };

  /// `tls`: of its connections. Errors: io_error.
  static caf::expected<std::unique_ptr<greeting_desk>> make(
    credentials_ptr own, listener_kind as, const stranger_limits& limits = {}, const tls_limits& tls = {});
  ~greeting_desk();
  greeting_desk(const greeting_desk&) = delete;
  greeting_desk& operator=(const greeting_desk&) = delete;

  /// Called at each refusal.
  void when_refused(std::function<void(greeting_refusal)> then) { refused_ = std::move(then); }

  /// Readable where `run` has something to do. Still the desk's own.
  int descriptor() const { return poll_; }
  /// A connection that was just accepted.
  void take(open_socket socket);
  /// Reads what has come, without waiting, and closes what is refused. Returns what is admitted.
  std::vector<admitted> run();

  size_t waiting() const { return strangers_.size(); }

private:
  struct stranger {
    open_socket socket;
    greeting_acceptor greeting;
    awake_clock::time_point until;
    uint64_t number;
    std::string from; ///< A socket whose other end has closed it no longer knows.
    tls_channel_ptr tls = {};
  };
  using place = std::list<stranger>::iterator;

  greeting_desk(credentials_ptr own, listener_kind as, const stranger_limits& limits, const tls_limits& tls, int poll,
                int timer);
  void read(place whom, std::vector<admitted>& out);
  /// Returns whether TLS is made, or is not wanted; `whom` may be refused otherwise.
  bool secure(place whom);
  bool send(place whom, std::span<const std::byte> bytes);
  /// `text`: of TLS, what it has done.
  void refuse(place whom, greeting_refusal why, std::string_view text = {});
  void log(const stranger& whom, greeting_refusal why, std::string_view text);
  void set_timer();

  const credentials_ptr own_;
  const listener_kind kind_;
  const stranger_limits limits_;
  const tls_limits tls_limits_;
  const int poll_, timer_;
  std::function<void(greeting_refusal)> refused_;
  std::list<stranger> strangers_; ///< The oldest first.
  uint64_t numbers_ = 0;
  uint64_t refusals_ = 0;
  rate_limiter warnings_{std::chrono::seconds{1}};
};

} // namespace ringmaster
