#include "actors/links/io_loop.hpp"

#include "actors/scheduling/awake_clock.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace ringmaster {

caf::expected<std::unique_ptr<io_loop>> io_loop::make() {
  std::unique_ptr<io_loop> result{
    new io_loop{::epoll_create1(EPOLL_CLOEXEC), ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)}};
  epoll_event alarm{EPOLLIN, {.u64 = 0}};
  if (result->poll_ >= 0 && result->alarm_ >= 0
      && ::epoll_ctl(result->poll_, EPOLL_CTL_ADD, result->alarm_, &alarm) == 0)
    return result;
  return make_error(errc::io_error, fmt::format("bulk connections cannot be waited for: {}", std::strerror(errno)));
}

io_loop::~io_loop() {
  for (auto descriptor : {poll_, alarm_})
    if (descriptor >= 0)
      ::close(descriptor);
}

uint64_t io_loop::watch(int socket, uint32_t events, io_handler& handler) {
  epoll_event wanted{events, {.u64 = ++numbers_}};
  handlers_[numbers_] = &handler;
  ::epoll_ctl(poll_, EPOLL_CTL_ADD, socket, &wanted);
  return numbers_;
}

void io_loop::change(int socket, uint64_t number, uint32_t events) {
  epoll_event wanted{events, {.u64 = number}};
  ::epoll_ctl(poll_, EPOLL_CTL_MOD, socket, &wanted);
}

void io_loop::forget(int socket, uint64_t number) {
  handlers_.erase(number);
  ::epoll_ctl(poll_, EPOLL_CTL_DEL, socket, nullptr);
}

void io_loop::turn(time_point until) {
  constexpr auto longest = std::chrono::milliseconds{60'000};
  auto left = std::chrono::ceil<std::chrono::milliseconds>(until - awake_clock::actor_now());
  left = std::clamp(left, std::chrono::milliseconds{0}, again_.empty() ? longest : std::chrono::milliseconds{0});
  const auto again = std::exchange(again_, {});
  std::array<epoll_event, 64> ready;
  auto count = ::epoll_wait(poll_, ready.data(), ready.size(), static_cast<int>(left.count()));
  for (int i = 0; i < count; ++i) {
    auto number = ready[static_cast<size_t>(i)].data.u64;
    if (number == 0) {
      uint64_t rings = 0;
      [[maybe_unused]] auto read = ::read(alarm_, &rings, sizeof rings);
      continue;
    }
    if (auto x = handlers_.find(number); x != handlers_.end()) // the one before may have closed it
      x->second->on_ready(ready[static_cast<size_t>(i)].events);
  }
  for (const auto number : again)
    if (auto x = handlers_.find(number); x != handlers_.end())
      x->second->on_ready(EPOLLIN);
}

void io_loop::wake() {
  uint64_t ring = 1;
  [[maybe_unused]] auto written = ::write(alarm_, &ring, sizeof ring);
}

} // namespace ringmaster
