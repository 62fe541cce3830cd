#pragma once

#include "actors/links/io_loop.hpp"
#include "actors/links/link_counts.hpp"
#include "actors/links/link_fetch.hpp"
#include "actors/links/socket_greeting.hpp"
#include "actors/links/sockets.hpp"
#include "runtime/links/link_frames.hpp"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

struct link_options;

/// A range of a block that is to come.
struct wanted_part {
  std::shared_ptr<link_fetch> fetch;
  size_t index = 0;

  link_fetch::part& range() const { return fetch->parts[index]; }
};

/// A bulk connection to one address of another process, over which blocks are fetched from there; made when the first
/// is wanted, and made again where it breaks, or where nothing comes for `link.silence`. The I/O thread's.
///
///   idle --a part is wanted--> connecting --> proving --> greeting --> live
///     ^                             |            |           |          | broken or silent: what is under way again
///     +-- after `retry` -- failed <-+------------+-----------+----------+ several times without a byte
///
/// While it is proving, both ends show that they belong to the cluster (runtime/trust/greeting.hpp).
///
/// A part that comes while it has failed, and what was under way then, goes back to the owner.
class link_receiver : public io_handler {
public:
  using time_point = io_loop::time_point;
  using duration = std::chrono::nanoseconds;

  /// Takes back parts that cannot come over one connection, and hears why.
  class owner {
  public:
    virtual ~owner() = default;
    virtual void on_failed(std::vector<wanted_part> parts, const caf::error& why) = 0;
  };

  /// `name`: that its certificate has; may be empty.
  link_receiver(io_loop& loop, const link_options& options, link_counts& counts, uint64_t process,
                const std::string& name, endpoint there, owner& tells);
  /// What has not come ends as unreachable.
  ~link_receiver() override;

  /// It has not failed, or so long ago that it is tried again.
  bool usable(time_point now) const { return state_ != state::failed || now >= retry_at_; }
  /// What is under way and waits.
  size_t load() const { return under_way_.size() + waiting_.size(); }
  /// Whether nothing would be lost without it.
  bool forgettable(time_point now) const {
    return load() == 0 && (state_ == state::idle || (state_ == state::failed && now >= retry_at_));
  }
  void want(const wanted_part& part);
  /// Of a fetch that has ended, or was revoked: what still comes of it is dropped.
  void cancel(const link_fetch& fetch);

  /// The way to this host may be gone: a connection that was made before is not trusted, nor a new one waited for long.
  void doubt();

  void on_ready(uint32_t events) override;
  void on_time(time_point now);
  /// When `on_time` is to be called.
  time_point due() const;
  const caf::error& failure() const { return failure_; }

private:
  enum class state { idle, connecting, proving, greeting, live, failed };

  void connect();
  duration connect_limit() const;
  void on_connected();
  void prove();
  void read_hello();
  void read();
  /// As ::recv and ::send.
  ssize_t receive(std::span<std::byte> to);
  ssize_t send(std::span<const std::byte> bytes);
  bool read_header();
  bool read_bytes();
  bool begin_frame();
  bool end_frame();
  void request(const wanted_part& part);
  void say(std::span<const std::byte> words);
  void send_words();
  /// Takes what the system gave: the frame's bytes, and after them the next header.
  bool took(ssize_t count, uint64_t frame_left);
  void put_elements(const block_sink& sink);
  /// Made again for what is under way, if it seems worth it.
  bool broke(const std::string& why);
  void fail(const caf::error& why);
  void close();
  caf::error unreachable(const std::string& why) const;
  void watch(uint32_t events);

  io_loop& loop_;
  const link_options& options_;
  link_counts& counts_;
  const uint64_t process_; ///< That is to be there.
  const endpoint there_;
  const std::vector<std::string> hosts_; ///< Its certificate has one of them.
  owner& owner_;

  state state_ = state::idle;
  open_socket socket_;
  tls_channel_ptr tls_;
  std::optional<socket_greeting> greeting_; ///< While it is proving.
  uint64_t number_ = 0;
  uint32_t events_ = 0;
  time_point deadline_;   ///< Of connecting and greeting.
  time_point connect_at_; ///< While idle with parts that wait.
  time_point retry_at_;   ///< Once failed.
  time_point heard_;      ///< When bytes came, or began to be waited for.
  uint32_t silences_ = 0; ///< In a row; each doubles what is borne.
  uint32_t failures_ = 0; ///< In a row.
  uint32_t barren_ = 0;   ///< Connections in a row that broke before a byte came.
  bool doubted_ = false;  ///< The last one fell silent.
  bool fruitful_ = false; ///< Bytes have come over this one.
  caf::error failure_;

  std::vector<wanted_part> waiting_; ///< Until it is live.
  std::map<uint64_t, wanted_part> under_way_;
  uint64_t next_id_ = 1;         ///< Of this connection.
  std::vector<std::byte> words_; ///< To be sent.

  std::array<std::byte, link_frame::wire_bytes> header_; ///< Or the hello.
  size_t header_got_ = 0;
  std::optional<link_frame> frame_; ///< Whose bytes come.
  wanted_part part_;                ///< What they are for; without a fetch: they are dropped.
  uint64_t frame_got_ = 0;
  uint64_t frame_put_ = 0;
  std::vector<std::byte> slab_; ///< For what is not read into place.
};

} // namespace ringmaster
