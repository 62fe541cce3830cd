// What a process that was admitted to a bulk connection sends to the end that has the blocks.
#include "actors/links/link_sender.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/memory/device_memory.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/support/temporary_directory.hpp"

#include <array>
#include <sys/socket.h>

namespace ringmaster::fuzz {

namespace {

constexpr uint64_t memory_start = 1 << 20, memory_bytes = 8192, exposed_bytes = 4096, this_process = 7;
constexpr transfer_key exposed_key{.channel = 1, .epoch = {1}, .sequence = {1}, .source = 0, .destination = 1};

const std::shared_ptr<device_memory>& block_memory() {
  static const test::temporary_directory dir;
  static const auto opened = device_memory::open({device_id{3}, dir.path() / "memory", memory_start, memory_bytes});
  ensure(opened.engaged(), "a device has memory");
  return *opened;
}

/// Reads and drops what was sent. Returns how much it was.
size_t drain(int socket) {
  std::array<char, 65536> dropped;
  size_t result = 0;
  for (ssize_t count = 0; (count = ::recv(socket, dropped.data(), dropped.size(), MSG_DONTWAIT)) > 0;)
    result += static_cast<size_t>(count);
  return result;
}

void serve_requests(std::string_view bytes) {
  auto loop = io_loop::make();
  ensure(loop.engaged(), "the system has descriptors");
  const auto exposures = std::make_shared<link_exposures>();
  const link_exposure exposed{exposures, exposed_key, {device_id{3}, memory_start, exposed_bytes, block_memory()}};
  std::array<int, 2> ends{};
  ensure(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "the system has sockets");
  const open_socket peer{ends[0]};
  link_counts counts;
  link_sender sender{**loop, {open_socket{ends[1]}, {}, {}}, *exposures, this_process, counts};
  while (!bytes.empty() && !sender.closed()) {
    const auto piece = bytes.substr(0, 1024);
    bytes.remove_prefix(piece.size());
    if (::send(peer.descriptor, piece.data(), piece.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(piece.size()))
      break;
    do
      (*loop)->turn(io_loop::time_point{}); // waits for nothing
    while (drain(peer.descriptor) > 0 && !sender.closed());
  }
}

const fuzz_target fuzz_link_sender{"link_sender", serve_requests};

} // namespace

} // namespace ringmaster::fuzz
