#pragma once

#include "actors/links/greeting_desk.hpp"
#include "actors/links/io_loop.hpp"
#include "actors/links/link_counts.hpp"
#include "actors/links/sockets.hpp"
#include "messages/transfer.hpp"
#include "runtime/links/link_frames.hpp"

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace ringmaster {

/// A block that other processes may fetch.
struct exposed_block {
  device_window window;
  std::atomic<bool> withdrawn{false}; ///< No new frame of it is started; memory that a frame is sent from stays mapped.
  std::atomic<bool> damaged{false};   ///< The system could not read it.
  std::atomic<uint64_t> frames{0};    ///< Sent, or begun.
};

/// The blocks of this process's devices that are on offer to other processes. Thread-safe.
class link_exposures {
public:
  void add(const transfer_key& key, std::shared_ptr<exposed_block> block);
  /// Only if it is still this one.
  void remove(const transfer_key& key, const exposed_block& block);
  /// Null: it is not on offer.
  std::shared_ptr<exposed_block> find(const transfer_key& key, device_id device) const;

private:
  mutable std::mutex mutex_;
  std::map<transfer_key, std::shared_ptr<exposed_block>> blocks_;
};

/// While it lives, others may fetch the block.
class link_exposure {
public:
  link_exposure(std::shared_ptr<link_exposures> all, const transfer_key& key, const device_window& window);
  ~link_exposure();
  link_exposure(const link_exposure&) = delete;
  link_exposure& operator=(const link_exposure&) = delete;

  /// Grows while it is fetched.
  uint64_t frames() const { return block_->frames; }

private:
  std::shared_ptr<link_exposures> all_;
  transfer_key key_;
  std::shared_ptr<exposed_block> block_;
};

/// A bulk connection that another process has made to this one, to fetch blocks. They are sent straight from the
/// devices' memory, a frame of each in turn; what its reader does not take stays where it is, so that a slow one costs
/// no memory but the system's buffers of one socket. The I/O thread's.
class link_sender : public io_handler {
public:
  using time_point = io_loop::time_point;
  static constexpr size_t requests_max = 1u << 16; ///< Under way on one connection.

  /// `process`: who we are.
  link_sender(io_loop& loop, greeting_desk::admitted made, link_exposures& exposures, uint64_t process,
              link_counts& counts);
  ~link_sender() override;

  void on_ready(uint32_t events) override;
  /// Who is at the other end.
  const peer_identity& peer() const { return session_.peer; }
  /// Whether there is nothing left of it: it can be deleted.
  bool closed() const { return socket_.descriptor < 0; }
  /// A peer that connects and does not say hello is dropped.
  void on_time(time_point now);
  time_point due() const { return greeted_ ? time_point::max() : greet_until_; }

private:
  struct request {
    link_request what;
    std::shared_ptr<exposed_block> block; ///< Null: it is not on offer.
    uint64_t sent = 0;
  };
  struct outgoing_frame {
    std::array<std::byte, link_frame::wire_bytes> header;
    std::span<const std::byte> bytes;
    uint64_t sent = 0; ///< Of both.
    std::shared_ptr<exposed_block> block;
  };

  void read();
  /// As ::sendmsg.
  ssize_t send(std::span<const std::span<const std::byte>> parts);
  void take_words();
  void take(const link_request& x);
  void serve();
  bool next_frame();
  void refuse(const std::string& why);
  void close();

  io_loop& loop_;
  open_socket socket_;
  tls_channel_ptr tls_;
  const session session_;
  link_exposures& exposures_;
  uint64_t process_;
  link_counts& counts_;
  uint64_t number_;
  time_point greet_until_;
  bool greeted_ = false;
  bool writable_wanted_ = false;
  std::array<std::byte, 4096> words_; ///< What was read and is not taken yet.
  size_t words_bytes_ = 0;
  std::deque<request> requests_; ///< The next frame is the first's.
  std::optional<outgoing_frame> frame_;
  std::array<std::byte, link_hello::wire_bytes> hello_;
  size_t hello_left_ = 0;
};

} // namespace ringmaster
