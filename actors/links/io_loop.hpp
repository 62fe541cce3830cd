#pragma once

#include "messages/errc.hpp"

#include <caf/expected.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <sys/epoll.h>

namespace ringmaster {

/// Called when a socket is ready.
class io_handler {
public:
  virtual ~io_handler() = default;
  /// `events` are epoll's. It reads and writes a bounded amount, and does not wait.
  virtual void on_ready(uint32_t events) = 0;
};

/// Waits for many sockets at once. All but `wake` is for one thread. A handler lives until `forget`, and is not deleted
/// while one of its functions runs.
class io_loop {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Errors: io_error.
  static caf::expected<std::unique_ptr<io_loop>> make();
  ~io_loop();
  io_loop(const io_loop&) = delete;
  io_loop& operator=(const io_loop&) = delete;

  /// Returns a number for the socket, which is never another's.
  uint64_t watch(int socket, uint32_t events, io_handler& handler);
  void change(int socket, uint64_t number, uint32_t events);
  void forget(int socket, uint64_t number);
  /// Tells the handlers of what is ready, or waits for something, `until` then at the longest, or for `wake`.
  void turn(time_point until);
  /// Has the handler called at the next turn, as if bytes had come: it holds some that were read ahead.
  void call_again(uint64_t number) { again_.push_back(number); }
  /// From any thread.
  void wake();

private:
  io_loop(int poll, int alarm) : poll_(poll), alarm_(alarm) {}

  int poll_;
  int alarm_;
  uint64_t numbers_ = 0;
  std::map<uint64_t, io_handler*> handlers_;
  std::vector<uint64_t> again_;
};

} // namespace ringmaster
