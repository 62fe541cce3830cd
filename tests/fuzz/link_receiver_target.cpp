// What a process that was admitted to a bulk connection sends to the end that wants blocks.
#include "actors/links/link_hub.hpp"
#include "actors/links/link_receiver.hpp"
#include "runtime/invariants/ensure.hpp"
#include "tests/fuzz/fuzz_target.hpp"

#include <array>
#include <netinet/in.h>
#include <sys/socket.h>

namespace ringmaster::fuzz {

namespace {

constexpr uint64_t wanted_bytes = 64, other_process = 7;

/// A port of this host at which the other end of each connection is taken.
struct other_end {
  other_end() : listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    ensure(::bind(listening.descriptor, any, size) == 0 && ::listen(listening.descriptor, 8) == 0
             && ::getsockname(listening.descriptor, any, &size) == 0,
           "this host has a free port");
    where = endpoint{"127.0.0.1", ntohs(address.sin_port)};
  }

  /// A connection over which both ends have greeted; none: it does not connect.
  open_socket accept(io_loop& loop) const {
    loop.turn(io_loop::time_point{});
    open_socket result{::accept4(listening.descriptor, nullptr, nullptr, SOCK_CLOEXEC)};
    if (result.descriptor < 0)
      return result;
    const linger at_once{1, 0}; // no port is occupied after the end
    ::setsockopt(result.descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    greeting_acceptor acceptor{no_credentials(), listener_kind::bulk_link, greeting_nonce{}};
    send(result, acceptor.challenge());
    for (int i = 0; i < 8; ++i) {
      loop.turn(io_loop::time_point{});
      std::array<std::byte, answer_bytes> answer;
      const auto count = ::recv(result.descriptor, answer.data(), acceptor.wanted(), MSG_DONTWAIT);
      if (count <= 0)
        continue;
      const auto step = acceptor.take(std::span{answer}.first(static_cast<size_t>(count)));
      if (const auto* admitted = std::get_if<greeting_acceptor::admitted>(&step)) {
        send(result, admitted->verdict);
        return result;
      }
    }
    return open_socket{};
  }

  static bool send(const open_socket& to, std::span<const std::byte> bytes) {
    return ::send(to.descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT)
           == static_cast<ssize_t>(bytes.size());
  }

  open_socket listening;
  endpoint where;
};

struct forgetful_owner : link_receiver::owner {
  void on_failed(std::vector<wanted_part>, const caf::error&) override {}
};

/// The first byte: whether the blocks are to be reduced, and whether they come with checksums.
void fetch_blocks(std::string_view bytes) {
  static const other_end there;
  input_parts parts{bytes};
  const auto choice = parts.byte();
  bytes = parts.rest();
  auto loop = io_loop::make();
  ensure(loop.engaged(), "the system has descriptors");
  link_options options;
  options.checksums = (choice & 2) != 0;
  link_counts counts;
  std::array<std::byte, wanted_bytes> into{}, operand{};
  static const auto sum = *reducer::of(proto::FLOAT64, gpu_sim::SUM);
  block_sink sink{.out = into.data()};
  if ((choice & 1) != 0) {
    sink.operand = operand.data();
    sink.combine = &sum;
  }
  const transfer_key key{.channel = 1};
  forgetful_owner owner;
  std::vector<std::shared_ptr<link_fetch>> fetches;
  link_receiver receiver{**loop, options, counts, other_process, {}, there.where, owner};
  for (int i = 0; i < 2; ++i) {
    fetches.push_back(std::make_shared<link_fetch>(key, device_id{3}, sink, wanted_bytes, [] {}));
    fetches.back()->parts = {{wanted_bytes, 0}};
    receiver.want({fetches.back(), 0});
  }
  // It connects again when a connection has broken: what is left is for the next one.
  for (int connections = 0; connections < 4 && !bytes.empty(); ++connections) {
    const auto connected = there.accept(**loop);
    if (connected.descriptor < 0)
      return;
    while (!bytes.empty()) {
      const auto piece = bytes.substr(0, 256);
      bytes.remove_prefix(piece.size());
      if (!other_end::send(connected, as_bytes(piece)))
        break;
      for (int turns = 0; turns < 4; ++turns) // the hello, what is asked for, and frames in two turns
        (*loop)->turn(io_loop::time_point{});
    }
  }
}

const fuzz_target fuzz_link_receiver{"link_receiver", fetch_blocks};

} // namespace

} // namespace ringmaster::fuzz
