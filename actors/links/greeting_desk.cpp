#include "actors/links/greeting_desk.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/timerfd.h>

namespace ringmaster {

namespace {

constexpr uint64_t timer_number = 0;

bool watch_for_reading(int poll, int descriptor, uint64_t number) {
  epoll_event wanted{EPOLLIN, {.u64 = number}};
  return ::epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &wanted) == 0;
}

} // namespace

caf::expected<std::unique_ptr<greeting_desk>> greeting_desk::make(
  credentials_ptr own, listener_kind as, const stranger_limits& limits, const tls_limits& tls) {
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  std::unique_ptr<greeting_desk> result{new greeting_desk{std::move(own), as, limits, tls, poll, timer}};
  if (poll < 0 || timer < 0 || !watch_for_reading(poll, timer, timer_number))
    return make_error(errc::io_error, fmt::format("connections cannot be waited for: {}", std::strerror(errno)));
  return result;
}

greeting_desk::greeting_desk(credentials_ptr own, listener_kind as, const stranger_limits& limits,
                             const tls_limits& tls, int poll, int timer)
  : own_(std::move(own)), kind_(as), limits_(limits), tls_limits_(tls), poll_(poll), timer_(timer) {}

greeting_desk::~greeting_desk() {
  for (const auto descriptor : {poll_, timer_})
    if (descriptor >= 0)
      ::close(descriptor);
}

void greeting_desk::take(open_socket socket) {
  if (strangers_.size() >= limits_.strangers_max)
    refuse(strangers_.begin(), greeting_refusal::too_many);
  auto from = other_end_text(socket.descriptor);
  strangers_.push_back({std::move(socket), greeting_acceptor{own_, kind_}, awake_clock::now() + limits_.greeting,
                        ++numbers_, std::move(from)});
  const auto newest = std::prev(strangers_.end());
  if (!watch_for_reading(poll_, newest->socket.descriptor, newest->number)
      || !send_at_once(newest->socket.descriptor, newest->greeting.challenge()))
    return refuse(newest, greeting_refusal::cut_short);
  set_timer();
}

std::vector<greeting_desk::admitted> greeting_desk::run() {
  std::vector<admitted> result;
  std::array<epoll_event, 64> ready;
  const auto count = ::epoll_wait(poll_, ready.data(), ready.size(), 0);
  for (int i = 0; i < count; ++i) {
    const auto number = ready[static_cast<size_t>(i)].data.u64;
    if (number == timer_number) {
      uint64_t rings = 0;
      [[maybe_unused]] const auto got = ::read(timer_, &rings, sizeof rings);
      continue;
    }
    if (const auto whom = std::ranges::find(strangers_, number, &stranger::number); whom != strangers_.end())
      read(whom, result);
  }
  // What has come counts, however late it is read. The clock excludes pauses of this process.
  while (!strangers_.empty() && strangers_.front().until <= awake_clock::now())
    refuse(strangers_.begin(), greeting_refusal::too_slow);
  set_timer();
  return result;
}

bool greeting_desk::secure(place whom) {
  constexpr auto handshake_record = std::byte{22};
  constexpr uint64_t bytes_max = 64u << 10; // of two certificates and their chains
  const auto socket = whom->socket.descriptor;
  if (!whom->greeting.awaits_tls())
    return true;
  if (whom->tls == nullptr) {
    std::byte first{};
    const auto count = ::recv(socket, &first, sizeof first, MSG_DONTWAIT | MSG_PEEK);
    if (count <= 0 || first != handshake_record)
      return true; // it greets without TLS, and is refused
    whom->tls = std::make_unique<tls_channel>(own_->tls, tls_limits_);
  }
  switch (whom->tls->handshake(socket)) {
    case tls_session::step::done: whom->greeting.secured(whom->tls->peer()); return true;
    case tls_session::step::failed: {
      const auto failure = whom->tls->failure();
      refuse(whom, failure.why, failure.text);
      return false;
    }
    case tls_session::step::more: break;
  }
  if (whom->tls->bytes_come() > bytes_max)
    refuse(whom, greeting_refusal::tls_failed);
  return false;
}

bool greeting_desk::send(place whom, std::span<const std::byte> bytes) {
  const auto socket = whom->socket.descriptor;
  return whom->tls == nullptr ? send_at_once(socket, bytes)
                              : whom->tls->send(socket, bytes) == static_cast<ssize_t>(bytes.size());
}

void greeting_desk::read(place whom, std::vector<admitted>& out) {
  if (!secure(whom))
    return;
  std::array<std::byte, answer_bytes> bytes;
  const auto room = std::span{bytes}.first(whom->greeting.wanted());
  const auto count = whom->tls == nullptr ? ::recv(whom->socket.descriptor, room.data(), room.size(), MSG_DONTWAIT)
                                          : whom->tls->receive(whom->socket.descriptor, room);
  if (count < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (count < 0 && errno == EPROTO) {
    const auto failure = whom->tls->failure();
    return refuse(whom, failure.why, failure.text);
  }
  if (count <= 0)
    return refuse(whom, greeting_refusal::cut_short);
  auto step = whom->greeting.take(std::span{bytes}.first(static_cast<size_t>(count)));
  if (const auto* refused = std::get_if<greeting_acceptor::refused>(&step))
    return refuse(whom, refused->why);
  auto* welcome = std::get_if<greeting_acceptor::admitted>(&step);
  if (welcome == nullptr)
    return;
  if (!send(whom, welcome->verdict))
    return refuse(whom, greeting_refusal::cut_short);
  ::epoll_ctl(poll_, EPOLL_CTL_DEL, whom->socket.descriptor, nullptr);
  if (whom->tls != nullptr && !whom->tls->greeted(own_->protects(kind_)))
    return refuse(whom, greeting_refusal::other_bytes);
  out.push_back({std::move(whom->socket), std::move(welcome->with), std::move(whom->tls)});
  strangers_.erase(whom);
}

void greeting_desk::refuse(place whom, greeting_refusal why, std::string_view text) {
  if (whom->tls == nullptr || !whom->greeting.awaits_tls()) // else an alert has said it
    send(whom, greeting_acceptor::verdict_of(why));
  log(*whom, why, text);
  strangers_.erase(whom); // its descriptor leaves the poll as it is closed
  if (refused_)
    refused_(why);
}

void greeting_desk::log(const stranger& whom, greeting_refusal why, std::string_view text) {
  ++refusals_;
  if (const auto times = warnings_.happened(awake_clock::actor_now()); times > 0)
    spdlog::warn("a connection from {} to {} ({}) was refused: {} ({} since the last report, {} in all)", whom.from,
                 own_end_text(whom.socket.descriptor), name_of(kind_),
                 text.empty() ? std::string{text_of(why)} : fmt::format("it {}", text), times, refusals_);
}

void greeting_desk::set_timer() {
  itimerspec when{};
  if (!strangers_.empty()) {
    const auto left = std::max<int64_t>(std::chrono::nanoseconds{strangers_.front().until - awake_clock::now()}.count(),
                                        1);
    when.it_value = {left / 1'000'000'000, left % 1'000'000'000};
  }
  ::timerfd_settime(timer_, 0, &when, nullptr);
}

} // namespace ringmaster
