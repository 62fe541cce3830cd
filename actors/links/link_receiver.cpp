#include "actors/links/link_receiver.hpp"

#include "actors/links/link_hub.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace ringmaster {

namespace {

std::vector<std::string> hosts_of(const endpoint& there, const std::string& name) {
  std::vector<std::string> result{without_brackets(there.host)};
  if (!name.empty())
    result.push_back(name);
  return result;
}

} // namespace

link_receiver::link_receiver(io_loop& loop, const link_options& options, link_counts& counts, uint64_t process,
                             const std::string& name, endpoint there, owner& tells)
  : loop_(loop), options_(options), counts_(counts), process_(process), there_(std::move(there)),
    hosts_(hosts_of(there_, name)), owner_(tells) {}

link_receiver::~link_receiver() {
  close();
  for (auto& x : waiting_)
    x.fetch->end(link_fetch::outcome::unreachable,
                 make_error(errc::unreachable, "this process has closed its bulk connections"));
}

// -- requests -------------------------------------------------------------------

void link_receiver::want(const wanted_part& part) {
  ensure(part.fetch != nullptr, "a part that is wanted is of a fetch");
  if (state_ == state::failed)
    state_ = state::idle; // the owner has checked that it may be tried again
  if (state_ == state::live)
    return request(part);
  waiting_.push_back(part);
  if (state_ == state::idle && connect_at_ == time_point{})
    connect();
}

void link_receiver::request(const wanted_part& part) {
  if (under_way_.empty())
    heard_ = awake_clock::actor_now();
  auto& fetch = *part.fetch;
  auto& range = part.range();
  ensure(state_ == state::live, "requests go over a live connection");
  ensure(range.next < range.end, "a part that is requested has bytes missing");
  link_request x;
  x.id = next_id_++;
  x.key = fetch.key();
  x.device = fetch.device();
  x.offset = range.next;
  x.bytes = range.end - range.next;
  x.unit = fetch.unit();
  x.checksums = options_.checksums;
  const bool is_new = under_way_.emplace(x.id, part).second;
  ensure(is_new, "each request has a number of its own");
  say(encode(x));
}

void link_receiver::cancel(const link_fetch& fetch) {
  std::erase_if(waiting_, [&](auto& x) { return x.fetch.get() == &fetch; });
  for (auto i = under_way_.begin(); i != under_way_.end();) {
    if (i->second.fetch.get() != &fetch) {
      ++i;
      continue;
    }
    link_request x;
    x.what = link_request::kind::cancel;
    x.id = i->first;
    i = under_way_.erase(i);
    say(encode(x));
  }
}

void link_receiver::say(std::span<const std::byte> words) {
  words_.insert(words_.end(), words.begin(), words.end());
  if (state_ == state::live)
    send_words();
}

void link_receiver::send_words() {
  while (!words_.empty()) {
    auto sent = send(words_);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0)
      break; // full, or broken: reading shows which
    words_.erase(words_.begin(), words_.begin() + sent);
  }
  watch(words_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

ssize_t link_receiver::send(std::span<const std::byte> bytes) {
  return tls_ ? tls_->send(socket_.descriptor, bytes)
              : ::send(socket_.descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t link_receiver::receive(std::span<std::byte> to) {
  return tls_ ? tls_->receive(socket_.descriptor, to) : ::recv(socket_.descriptor, to.data(), to.size(), MSG_DONTWAIT);
}

void link_receiver::watch(uint32_t events) {
  if (std::exchange(events_, events) != events)
    loop_.change(socket_.descriptor, number_, events);
}

// -- the connection ---------------------------------------------------------------

void link_receiver::connect() {
  ensure(state_ == state::idle && socket_.descriptor < 0, "a connection is made when there is none");
  connect_at_ = {};
  auto address = numeric_address(there_);
  if (!address)
    return fail(unreachable(render(address.error())));
  auto socket = begin_connect(*address);
  if (!socket)
    return fail(unreachable(render(socket.error())));
  socket_ = std::move(*socket);
  prepare_bulk_socket(socket_.descriptor);
  events_ = EPOLLOUT;
  number_ = loop_.watch(socket_.descriptor, events_, *this);
  deadline_ = awake_clock::actor_now() + connect_limit();
  state_ = state::connecting;
}

link_receiver::duration link_receiver::connect_limit() const {
  return doubted_ ? options_.connect_limit / 3
                  : options_.connect_limit; // a fetch waits, and the peer has answered before
}

void link_receiver::doubt() {
  doubted_ = true; // also if it is made later: fetches must not wait for it
  if (state_ == state::connecting || state_ == state::proving || state_ == state::greeting)
    deadline_ = std::min(deadline_, awake_clock::actor_now() + connect_limit());
  else if (state_ == state::live && load() > 0)
    broke("may have lost its connection");
  else if (state_ == state::live)
    close();
}

void link_receiver::on_connected() {
  ensure(state_ == state::connecting, "a connection is made that was started");
  int problem = 0;
  socklen_t size = sizeof problem;
  if (::getsockopt(socket_.descriptor, SOL_SOCKET, SO_ERROR, &problem, &size) != 0)
    problem = errno;
  if (problem == 0 && is_its_own_peer(socket_.descriptor))
    problem = ECONNREFUSED;
  if (problem != 0)
    return fail(
      unreachable(fmt::format("{}; {}", std::strerror(problem), connect_advice(problem, listener_kind::bulk_link))));
  prepare_bulk_socket(socket_.descriptor); // now its own address is known
  state_ = state::proving;
  greeting_.emplace([own = options_.trust] { return caf::expected<credentials_ptr>{own}; }, listener_kind::bulk_link,
                    text_of(there_), hosts_);
  watch(EPOLLIN);
}

void link_receiver::prove() {
  ensure(state_ == state::proving && greeting_.has_value(), "a greeting is read while it is going on");
  auto proved = greeting_->advance(socket_.descriptor);
  if (!proved)
    return;
  if (!*proved)
    return fail(unreachable(render(proved->error())));
  tls_ = std::move((*proved)->tls);
  greeting_.reset();
  state_ = state::greeting;
  auto hello = encode(link_hello{process_});
  words_.assign(hello.begin(), hello.end());
  send_words();
}

void link_receiver::read_hello() {
  ensure(state_ == state::greeting && header_got_ < link_hello::wire_bytes, "a hello is read once");
  auto count = receive(std::span{header_}.first(link_hello::wire_bytes).subspan(header_got_));
  if (count < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (count <= 0)
    return fail(unreachable("the process that listens there is another one, or of another version"));
  header_got_ += static_cast<size_t>(count);
  if (header_got_ < link_hello::wire_bytes)
    return;
  header_got_ = 0;
  auto hello = decode_hello(std::span{header_}.first<link_hello::wire_bytes>());
  if (!hello || hello->process != process_)
    return fail(unreachable(hello ? "another process listens there" : render(hello.error())));
  ++counts_.connections_made;
  failures_ = 0;
  doubted_ = false;
  state_ = state::live;
  fruitful_ = false;
  next_id_ = 1;
  for (auto& x : std::exchange(waiting_, {}))
    request(x);
}

bool link_receiver::broke(const std::string& why) {
  constexpr uint32_t barren_max = 5;
  constexpr auto pause = std::chrono::milliseconds{20}; // then twice as long each time
  ++counts_.connections_lost;
  barren_ = fruitful_ ? 0 : barren_ + 1;
  if (load() > 0)
    spdlog::warn("the bulk connection from {} to {} {}: it is made again", own_end_text(socket_.descriptor),
                 text_of(there_), why);
  close();
  if (barren_ >= barren_max) {
    barren_ = 0;
    fail(unreachable(fmt::format("{} {} times before a byte had come", why, barren_max)));
    return false;
  }
  if (barren_ == 0 && load() > 0)
    connect();
  else if (load() > 0)
    connect_at_ = awake_clock::actor_now() + pause * (1 << barren_);
  return false;
}

void link_receiver::close() {
  for (auto& x : under_way_)
    waiting_.push_back(x.second);
  under_way_.clear();
  words_.clear();
  greeting_.reset();
  frame_.reset();
  part_ = {};
  header_got_ = 0;
  state_ = state::idle;
  if (socket_.descriptor < 0)
    return;
  loop_.forget(socket_.descriptor, number_);
  tls_.reset();
  socket_ = open_socket{};
}

void link_receiver::fail(const caf::error& why) {
  constexpr auto retry = std::chrono::seconds{5}; // then twice as long each time, since a fetch waits for it
  constexpr uint32_t doubled_max = 4;
  close();
  state_ = state::failed;
  ensure(failures_ <= doubled_max, "the pause between two tries is bounded");
  retry_at_ = awake_clock::actor_now() + retry * (1u << failures_);
  failures_ = std::min(failures_ + 1, doubled_max);
  failure_ = why;
  connect_at_ = {};
  owner_.on_failed(std::exchange(waiting_, {}), why);
}

caf::error link_receiver::unreachable(const std::string& why) const {
  auto own = socket_.descriptor >= 0 // where none was made, nothing says which of its addresses this end would have had
               ? own_end_text(socket_.descriptor)
               : fmt::format("pid {} (link.addresses: {})", ::getpid(), fmt::join(options_.addresses, ", "));
  return make_error(errc::unreachable,
                    fmt::format("there is no bulk connection from {} to {}: {}; link.addresses names "
                                "those that a node tells others",
                                own, text_of(there_), why));
}

link_receiver::time_point link_receiver::due() const {
  switch (state_) {
    case state::connecting:
    case state::proving:
    case state::greeting: return deadline_;
    case state::live: return under_way_.empty() ? time_point::max() : heard_ + options_.silence * (1u << silences_);
    case state::idle: return connect_at_ == time_point{} ? time_point::max() : connect_at_;
    default: return time_point::max();
  }
}

void link_receiver::on_time(time_point now) {
  constexpr uint32_t silences_max = 6;
  if (now < due())
    return;
  if (state_ == state::idle)
    return connect();
  if (state_ != state::live)
    return fail(unreachable(fmt::format(
      "{} within {:.1f} s; {}", state_ == state::connecting ? "it was not made" : "the peer did not answer",
      std::chrono::duration<double>{connect_limit()}.count(), connect_advice(ETIMEDOUT, listener_kind::bulk_link))));
  auto borne = std::chrono::duration<double>{now - heard_}.count();
  silences_ = std::min(silences_ + 1, silences_max);
  fruitful_ = true; // its silence is what counts here
  doubted_ = true;
  broke(fmt::format("has been silent for {:.1f} s", borne));
}

void link_receiver::on_ready(uint32_t events) {
  if (state_ == state::connecting)
    return on_connected();
  if (state_ == state::proving)
    return prove();
  if ((events & EPOLLOUT) != 0)
    send_words();
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0)
    return;
  if (state_ == state::greeting)
    read_hello();
  else
    read();
  if (tls_ && tls_->has_more())
    loop_.call_again(number_);
}

} // namespace ringmaster
