// What two processes get from plain sockets on loopback, written by hand for that alone: the least that a library can
// take. Prints one JSON object, with the names of `ringmaster bench --json`; a round trip counts as an operation.
//
//   g++ -O3 -march=native -std=c++20 plain_sockets.cpp -o plain_sockets
//   ./plain_sockets all_reduce 67108864 20    each sends a half and adds what comes to its own, then sends the sum
//   ./plain_sockets ping_pong 1024 20         one blocking send and one blocking receive on each side, in turn
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

/// Both ends of a connection over loopback.
void connect_both(int& one, int& other) {
  int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  auto* address = reinterpret_cast<sockaddr*>(&where);
  if (::bind(listener, address, size) != 0 || ::listen(listener, 1) != 0
      || ::getsockname(listener, address, &size) != 0)
    fail("listen");
  one = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(one, address, size) != 0 || (other = ::accept(listener, nullptr, nullptr)) < 0)
    fail("connect");
  for (int socket : {one, other}) {
    int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    for (const char* congestion : {"reno", "cubic"}) // some hosts' "bbr" paces itself, to a half
      ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, congestion, std::strlen(congestion));
  }
  ::close(listener);
}

/// Sends and receives at once; tells `arrived` how many bytes have come so far.
template <class F>
void exchange(int socket, const char* out, char* in, size_t size, F&& arrived) {
  constexpr size_t piece = 256 << 10;
  size_t sent = 0, got = 0;
  while (sent < size || got < size) {
    pollfd waits{socket, static_cast<short>((sent < size ? POLLOUT : 0) | (got < size ? POLLIN : 0)), 0};
    if (::poll(&waits, 1, 10'000) <= 0)
      fail("poll");
    if ((waits.revents & POLLOUT) != 0)
      if (auto n = ::send(socket, out + sent, std::min(piece, size - sent), MSG_DONTWAIT); n > 0)
        sent += static_cast<size_t>(n);
    if ((waits.revents & POLLIN) != 0) {
      auto n = ::recv(socket, in + got, std::min(piece, size - got), MSG_DONTWAIT);
      if (n == 0)
        fail("the other process has ended");
      if (n > 0)
        arrived(got += static_cast<size_t>(n));
    }
  }
}

struct all_reduce {
  int socket, rank;
  std::vector<float> input, output, slab;

  all_reduce(int its_socket, int its_rank, size_t count)
    : socket(its_socket), rank(its_rank), input(count), output(count), slab(count / 2) {
    for (size_t i = 0; i < count; ++i)
      input[i] = static_cast<float>((static_cast<size_t>(rank) * 5 + i) % 11);
  }

  void run() {
    auto half = input.size() / 2, bytes = half * sizeof(float);
    auto mine = static_cast<size_t>(rank) * half, theirs = half - mine;
    size_t added = 0;
    exchange(socket, reinterpret_cast<char*>(&input[theirs]), reinterpret_cast<char*>(slab.data()), bytes,
             [&](size_t got) { // while it is in the caches
               for (; added < got / sizeof(float); ++added)
                 output[mine + added] = input[mine + added] + slab[added];
             });
    exchange(socket, reinterpret_cast<char*>(&output[mine]), reinterpret_cast<char*>(&output[theirs]), bytes,
             [](size_t) {});
  }

  size_t wrong() const {
    size_t result = 0;
    for (size_t i = 0; i < output.size(); ++i)
      result += output[i] != static_cast<float>(i % 11 + (5 + i) % 11) ? 1 : 0;
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
  int ends[2];
  connect_both(ends[0], ends[1]);
  auto child = ::fork();
  int rank = child == 0 ? 1 : 0;
  ::close(ends[1 - rank]);
  if (kind == "all_reduce")
    measure(all_reduce{ends[rank], rank, size / sizeof(float)}, "all_reduce", size, samples, 2);
  else
    measure(ping_pong{ends[rank], rank, size}, "ping_pong", size, samples, 256);
  int status = 0;
  if (rank == 0 && (::waitpid(child, &status, 0) != child || status != 0))
    return 1;
}
