// What two processes get from plain sockets on loopback, written by hand for that alone: the least that a library can
// take. Prints one JSON object, with the names of `ringmaster bench --json`; a round trip counts as an operation.
//
//   g++ -O3 -march=native -std=c++20 plain_sockets.cpp -o plain_sockets
//   ./plain_sockets all_reduce 67108864 20    each sends a half and adds what comes to its own, then sends the sum
//   ./plain_sockets ping_pong 1024 20         one blocking send and one blocking receive on each side, in turn
#include "runtime/samples/sample_hash.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

/// Before there is a connection, for what "bbr" has once set stays.
void prepare(int socket) {
  int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  for (const char* congestion : {"reno", "cubic"}) // some hosts' "bbr" paces itself, to a half
    ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, congestion, std::strlen(congestion));
}

/// Both ends of a connection over loopback.
void connect_both(int& one, int& other) {
  int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  prepare(listener); // what it accepts is as it is
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  auto* address = reinterpret_cast<sockaddr*>(&where);
  if (::bind(listener, address, size) != 0 || ::listen(listener, 1) != 0
      || ::getsockname(listener, address, &size) != 0)
    fail("listen");
  one = ::socket(AF_INET, SOCK_STREAM, 0);
  prepare(one);
  if (::connect(one, address, size) != 0 || (other = ::accept(listener, nullptr, nullptr)) < 0)
    fail("connect");
  ::close(listener);
}

/// A connection for each direction: with one for both, what comes waits while something is sent.
struct two_ways {
  int out, in;
};

/// Sends and receives at once. Where `take` is called it has what came, in a buffer that stays in the caches; else it
/// comes into place.
template <class F>
void exchange(two_ways ways, const char* out, char* in, size_t size, bool in_place, F&& take) {
  constexpr size_t piece = 256 << 10;
  constexpr int turns = 8; // of each, between two looks at both
  size_t sent = 0, got = 0;
  while (sent < size || got < size) {
    pollfd waits[] = {{ways.out, static_cast<short>(sent < size ? POLLOUT : 0), 0},
                      {ways.in, static_cast<short>(got < size ? POLLIN : 0), 0}};
    if (::poll(waits, 2, 10'000) <= 0)
      fail("poll");
    for (int i = 0; i < turns && sent < size && (waits[0].revents & POLLOUT) != 0; ++i)
      if (auto n = ::send(ways.out, out + sent, std::min(piece, size - sent), MSG_DONTWAIT | MSG_NOSIGNAL); n > 0)
        sent += static_cast<size_t>(n);
      else
        break;
    for (int i = 0; i < turns && got < size && (waits[1].revents & POLLIN) != 0; ++i) {
      auto at = in_place ? got : got % piece;
      auto n = ::recv(ways.in, in + at, std::min(piece - got % piece, size - got), MSG_DONTWAIT);
      if (n == 0)
        fail("the other process has ended");
      if (n < 0)
        break;
      take(got, got + static_cast<size_t>(n));
      got += static_cast<size_t>(n);
    }
  }
}

struct all_reduce {
  two_ways ways;
  int rank;
  std::vector<float> input, output, slab;

  all_reduce(two_ways its_ways, int its_rank, size_t count)
    : ways(its_ways), rank(its_rank), input(count), output(count), slab((256 << 10) / sizeof(float)) {
    for (size_t i = 0; i < count; ++i)
      input[i] = value(static_cast<uint64_t>(rank), i);
  }

  /// Whole numbers, so that sums are exact.
  static float value(uint64_t of_rank, uint64_t index) {
    using namespace ringmaster;
    return static_cast<float>(sample_whole_number(sample_hash(sample_seed(of_rank), index), 1000));
  }

  void run() {
    auto half = input.size() / 2, bytes = half * sizeof(float);
    auto mine = static_cast<size_t>(rank) * half, theirs = half - mine;
    auto add = [to = &output[mine], ours = &input[mine], in = slab.data(), all = slab.size()](size_t from,
                                                                                              size_t until) {
      auto i = from / sizeof(float), end = until / sizeof(float); // whole ones; the rest when it has come
      auto* __restrict sum = to + i;
      auto* __restrict one = ours + i;
      auto* __restrict other = in + i % all;
      for (size_t k = 0; k < end - i; ++k)
        sum[k] = one[k] + other[k];
    };
    exchange(ways, reinterpret_cast<char*>(&input[theirs]), reinterpret_cast<char*>(slab.data()), bytes, false, add);
    exchange(ways, reinterpret_cast<char*>(&output[mine]), reinterpret_cast<char*>(&output[theirs]), bytes, true,
             [](size_t, size_t) {});
  }

  size_t wrong() const {
    size_t result = 0;
    for (size_t i = 0; i < output.size(); ++i)
      result += output[i] != value(0, i) + value(1, i) ? 1 : 0;
    return result;
  }
};

struct ping_pong {
  int socket, rank;
  std::vector<char> bytes;

  ping_pong(int its_socket, int its_rank, size_t size) : socket(its_socket), rank(its_rank), bytes(size) {}

  void receive() {
    for (size_t got = 0; got < bytes.size();)
      if (auto n = ::recv(socket, bytes.data() + got, bytes.size() - got, 0); n > 0)
        got += static_cast<size_t>(n);
      else
        fail("recv");
  }

  void send() {
    if (::send(socket, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
      fail("send");
  }

  void run() {
    if (rank == 0)
      send();
    receive();
    if (rank != 0)
      send();
  }

  static size_t wrong() { return 0; }
};

template <class T>
void measure(T what, const char* name, size_t size, int samples, int operations) {
  std::vector<double> times;
  what.run();
  auto wrong = what.wrong();
  for (int i = 0; i < samples + 2; ++i) {
    auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < operations; ++k)
      what.run();
    if (i >= 2)
      times.push_back(std::chrono::duration<double, std::micro>{std::chrono::steady_clock::now() - start}.count()
                      / operations);
  }
  std::sort(times.begin(), times.end());
  if (what.rank == 0)
    std::printf(R"({"kind":"%s","devices":2,"size":%zu,"time":%.3f,"wrong":%zu})"
                "\n",
                name, size, times[times.size() / 2], wrong);
}

} // namespace

int main(int argc, char** argv) {
  auto size = argc > 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  auto samples = argc > 3 ? std::atoi(argv[3]) : 0;
  std::string_view kind = argc > 1 ? argv[1] : "";
  if ((kind != "all_reduce" && kind != "ping_pong") || size == 0 || size % 8 != 0 || samples < 1) {
    std::fprintf(stderr, "usage: plain_sockets all_reduce|ping_pong BYTES SAMPLES; BYTES a multiple of 8\n");
    return 2;
  }
  int there[2], back[2]; // ends by rank
  connect_both(there[0], there[1]);
  connect_both(back[0], back[1]);
  auto child = ::fork();
  int rank = child == 0 ? 1 : 0;
  for (auto* ends : {there, back})
    ::close(ends[1 - rank]);
  if (kind == "all_reduce")
    measure(all_reduce{rank == 0 ? two_ways{there[0], back[0]} : two_ways{back[1], there[1]}, rank,
                       size / sizeof(float)},
            "all_reduce", size, samples, 2);
  else
    measure(ping_pong{there[rank], rank, size}, "ping_pong", size, samples, 256);
  int status = 0;
  if (rank == 0 && (::waitpid(child, &status, 0) != child || status != 0))
    return 1;
}
