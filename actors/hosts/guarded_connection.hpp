#pragma once

#include "actors/hosts/encrypted_stream.hpp"
#include "actors/trust/frame_guard.hpp"
#include "runtime/health/restart_intensity.hpp"
#include "runtime/trust/greeting.hpp"

#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/scribe.hpp>
#include <caf/node_id.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

/// Limits of one connection of CAF's protocol.
struct connection_limits {
  size_t greeting_bytes_max = 64u << 10;              ///< A client's greeting has an id, some 30 bytes.
  size_t message_bytes_max = (1u << 30) + (1u << 20); ///< As `route.chunk-bytes` may be, and what is around it.
  size_t reserved_bytes = 64u << 10;                  ///< Reserved for a message of which nothing has come.
};

/// Logs connections that claim another process's identity, or bring what is no message, once in a while. Thread-safe.
class claim_log {
public:
  void refused(const std::string& address, const caf::node_id& claimed);
  void malformed(const std::string& address);

private:
  std::mutex mutex_;
  rate_limiter claims_{std::chrono::seconds{10}}, malformed_{std::chrono::seconds{1}};
};

/// A connection of CAF's protocol that takes care of four things that CAF 0.17 does not:
///
/// Memory. CAF reserves and clears what the header of a message claims before a byte of it has come. Here memory is
/// reserved for twice what has come of a message, for `connection_limits::reserved_bytes` at first, and for as much as
/// the connection has brought before, up to some MiB: so messages of usual size are read in place.
///
/// Identity. A process gives its id when it greets, and CAF believes it at any time: from then on it sends what is
/// meant for that process over the connection that has greeted last. Here a greeting counts only when no other
/// connection with that process is open. Until then it waits, and nothing else is read: the older connection may be
/// closing, or its end may have been lost. One that the other end has closed, or whose other end has not acknowledged
/// anything for some seconds, is removed. At the doorman's limit the connection that waits is closed. A process that
/// connects a second time finds out by the answer, and closes its second connection by itself. A connection keeps its
/// identity. Two processes must not connect to each other at the same time: each would wait; of two nodes, only the
/// later one of the coordinator's list connects.
///
/// Rights. A message that the role of the other end does not allow is dropped, or answered with an error
/// (`frame_guard`).
///
/// Form. What is no greeting at first, a greeting later of another kind, or without a content ends the connection.
///
/// CAF's own scribe has a stream that cannot encrypt; the rest of it is here.
class guarded_connection final : public caf::io::scribe {
public:
  /// Which end this process is: it has accepted the connection, or made it.
  enum class side : uint8_t { accepted, made };

  /// `with`: what both ends have proved before. `tls`: null for a connection that is not encrypted.
  guarded_connection(caf::io::network::default_multiplexer& backend, int fd, side as, const connection_limits& limits,
                     std::shared_ptr<claim_log> log, session with = {}, tls_channel_ptr tls = {});
  ~guarded_connection() override;

  /// Has `then` called when the other end has greeted, or the connection is gone.
  void when_known(std::function<void()> then) { known_ = std::move(then); }
  /// Has `then` called when a greeting begins to wait, which is before it is known.
  void when_waiting(std::function<void()> then) { waiting_ = std::move(then); }
  /// Whether a greeting waits for an older connection with that process.
  bool waits() const { return !held_.empty(); }
  /// Looks whether that is gone.
  void look_again(caf::execution_unit* context);
  /// As if the other end had closed it.
  void close(caf::execution_unit* context);

  void configure_read(caf::io::receive_policy::config wanted) override;
  bool consume(caf::execution_unit* context, const void* data, size_t bytes) override;
  void ack_writes(bool enable) override { stream_.ack_writes(enable); }
  std::vector<char>& wr_buf() override { return stream_.wr_buf(); }
  std::vector<char>& rd_buf() override { return stream_.rd_buf(); }
  void graceful_shutdown() override;
  void flush() override { stream_.flush(this); }
  std::string addr() const override;
  uint16_t port() const override;
  void add_to_loop() override { stream_.activate(this); }
  void remove_from_loop() override { stream_.passivate(); }

  /// Who is at the other end.
  const peer_identity& peer() const { return session_.peer; }

  /// Bytes that are reserved for what comes; for tests.
  size_t reserved() { return gathered_.capacity() + rd_buf().capacity(); }

private:
  enum class identity : uint8_t { its_own, taken, another, malformed };

  /// Adds a piece of a part. Returns whether the part is complete, and then in `rd_buf()`.
  bool gather(size_t bytes);
  void read_next_piece();
  void read_at_most(size_t bytes);
  /// Of a header: whether it may come now.
  bool takes_header(const std::vector<char>& header);
  /// Of a greeting: whose it is.
  identity identify(caf::execution_unit* context, const std::vector<char>& greeting);
  bool pass_on(caf::execution_unit* context);
  /// Has CAF drop the frame whose content has come, if it may not have it.
  void drop_unless_admitted(caf::execution_unit* context);
  bool refuse(caf::execution_unit* context);
  /// The same, of what is no message.
  bool refuse_malformed(caf::execution_unit* context);
  void known();
  /// CAF's limit on silence starts when a connection is made, not at the start of the clock.
  void start_silence();

  encrypted_stream stream_;
  bool launched_ = false;
  const side side_;
  const connection_limits limits_;
  const std::shared_ptr<claim_log> log_;
  const session session_;
  const std::string address_;        ///< Of the other end, which a socket that was reset no longer knows.
  std::optional<frame_guard> guard_; ///< None before the first frame after the greetings.
  std::function<void()> known_, waiting_;
  size_t wanted_ = 0;          ///< Of the part that comes.
  size_t brought_ = 0;         ///< So far, of all parts.
  std::vector<char> gathered_; ///< Of the part that comes, before the piece that is being read.
  std::vector<char> held_;     ///< A greeting that waits.
  std::string greeting_;       ///< The other end's, which it may repeat.
  caf::node_id claimed_;       ///< By it.
  uint8_t kind_ = 0;           ///< Of the message whose content comes.
  bool content_follows_ = false;
  bool configured_ = false; ///< What it reads first.
  bool greeted_ = false;
  bool refused_ = false;
};

} // namespace ringmaster
