#pragma once

#include "actors/links/link_hub.hpp"
#include "actors/links/socket_greeting.hpp"
#include "runtime/links/link_frames.hpp"
#include "runtime/memory/device_memory.hpp"
#include "tests/actors/links/link_proxy.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <fstream>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>

namespace ringmaster::test {

inline constexpr uint64_t mib = 1u << 20;
inline constexpr uint64_t base = 4096;

inline transfer_key key_number(uint32_t index) {
  return {.channel = 1, .epoch = {1}, .sequence = {1}, .source = 0, .destination = 1, .index = index};
}

inline std::byte pattern(uint64_t at) {
  return static_cast<std::byte>((at * 2654435761u) >> 13);
}

inline link_options on_loopback() {
  link_options result;
  result.addresses = {"127.0.0.1"};
  return result;
}

/// A process with a device that offers blocks.
struct linked_owner {
  explicit linked_owner(uint64_t bytes, const link_options& options = on_loopback()) : hub(*link_hub::start(options)) {
    memory = *device_memory::open({device_id{3}, dir.path() / "device-3.memory", base, bytes, hub->place()});
  }

  void fill(uint64_t bytes) {
    auto all = *memory->at(base, bytes);
    for (uint64_t i = 0; i < bytes; ++i)
      all[i] = pattern(i);
  }

  std::shared_ptr<link_exposure> expose(uint32_t index, uint64_t offset, uint64_t bytes) {
    return hub->expose(key_number(index), {device_id{3}, base + offset, bytes, memory, memory->place()});
  }

  temporary_directory dir;
  std::shared_ptr<link_hub> hub;
  std::shared_ptr<device_memory> memory;
};

/// A process that fetches, and hears of the ends.
struct linked_reader {
  explicit linked_reader(const link_options& options = on_loopback()) : hub(*link_hub::start(options)) {}

  std::shared_ptr<link_fetch> begin(const link_place& from, uint32_t index, const block_sink& sink, uint64_t bytes) {
    return hub->fetch(from, key_number(index), device_id{3}, sink, bytes, [this] {
      std::lock_guard guard{mutex};
      ++ended;
      changed.notify_all();
    });
  }

  bool await_ends(uint64_t count) {
    std::unique_lock lock{mutex};
    return changed.wait_for(lock, std::chrono::seconds{20}, [&] { return ended >= count; });
  }

  link_fetch::outcome fetch(const link_place& from, uint32_t index, const block_sink& sink, uint64_t bytes) {
    auto before = [&] {
      std::lock_guard guard{mutex};
      return ended;
    }();
    last = begin(from, index, sink, bytes);
    REQUIRE(await_ends(before + 1));
    return last->state();
  }

  std::mutex mutex;
  std::condition_variable changed;
  uint64_t ended = 0;
  std::shared_ptr<link_fetch> last;
  std::shared_ptr<link_hub> hub;
};

inline bool has_pattern(std::span<const std::byte> bytes, uint64_t from = 0) {
  for (uint64_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != pattern(from + i))
      return false;
  return true;
}

/// Waits until something that another thread does has come so far.
template <class F>
bool await_true(F&& f) {
  for (auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20}; !f(); std::this_thread::yield())
    if (std::chrono::steady_clock::now() > end)
      return false;
  return true;
}

/// Memory of this process that belongs to no file, in bytes.
inline uint64_t own_memory() {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:"))
      return std::stoull(line.substr(8)) << 10;
  return 0;
}

/// What the listener sends before the first frame.
inline constexpr uint64_t greeted_bytes = challenge_bytes + verdict_bytes + link_hello::wire_bytes;

/// Has a connection admitted that a test made by hand.
inline void have_admitted(const open_socket& made) {
  socket_greeting greeting{[] { return caf::expected<credentials_ptr>{no_credentials()}; }, listener_kind::bulk_link,
                           "the hub"};
  REQUIRE(greet(made.descriptor, std::move(greeting), [] { return caf::error{}; }));
}

inline link_place by_way_of(const link_proxy& proxy, const link_place& place) {
  return {place.process, {proxy.endpoint()}, place.name};
}

} // namespace ringmaster::test
