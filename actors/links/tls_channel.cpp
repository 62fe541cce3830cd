#include "actors/links/tls_channel.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/socket.h>

namespace ringmaster {

bool tls_channel::flush(int socket) {
  while (!session_.unsent().empty()) {
    const auto bytes = session_.unsent();
    const auto count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return false;
    session_.sent(static_cast<size_t>(count));
  }
  return true;
}

bool tls_channel::greeted(protection as) {
  ensure(!greeted_, "a connection is greeted once");
  if (session_.has_more())
    return false;
  greeted_ = true;
  if (as != protection::authenticated)
    return true;
  const auto from_accepting = session_.key_for("EXPORTER-ringmaster-records-acceptor");
  const auto from_making = session_.key_for("EXPORTER-ringmaster-records-initiator");
  if (accepts_)
    records_.emplace(from_accepting, from_making);
  else
    records_.emplace(from_making, from_accepting);
  return true;
}

const tls_failure& tls_channel::failure() const {
  static const tls_failure forged{greeting_refusal::tls_failed,
                                  "sent what it has not authenticated: something between the two changes it"};
  return records_ ? forged : session_.failure();
}

ssize_t tls_channel::take_in(int socket) {
  auto room = session_.room();
  if (!greeted_)
    room = room.first(std::min(room.size(), session_.missing()));
  ensure(!room.empty(), "there is room for a record");
  for (;;) {
    const auto count = ::recv(socket, room.data(), room.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR)
      continue;
    if (count > 0)
      session_.came(static_cast<size_t>(count));
    return count;
  }
}

tls_session::step tls_channel::handshake(int socket) {
  for (;;) {
    const auto step = session_.handshake();
    flush(socket); // a few KiB, for which a new connection has room
    if (step != tls_session::step::more)
      return step;
    const auto count = take_in(socket);
    if (count < 0 && errno == EAGAIN)
      return step;
    if (count <= 0) {
      session_.cut_off();
      return tls_session::step::failed;
    }
  }
}

ssize_t tls_channel::receive_some(int socket, std::span<std::byte> to) {
  if (records_)
    return records_->receive_some(socket, to);
  for (;;) {
    const auto read = session_.read(to);
    switch (read.how) {
      case tls_session::read_step::some: return static_cast<ssize_t>(read.bytes);
      case tls_session::read_step::closed: return 0;
      case tls_session::read_step::failed: errno = EPROTO; return -1;
      case tls_session::read_step::more: break;
    }
    if (const auto count = take_in(socket); count <= 0)
      return count;
  }
}

ssize_t tls_channel::receive(int socket, std::span<std::byte> to) {
  size_t got = 0;
  while (got < to.size()) {
    const auto count = receive_some(socket, to.subspan(got));
    if (count <= 0)
      return got > 0 ? static_cast<ssize_t>(got) : count; // it comes again
    got += static_cast<size_t>(count);
  }
  return static_cast<ssize_t>(got);
}

ssize_t tls_channel::send(int socket, std::span<const std::span<const std::byte>> parts) {
  if (records_)
    return records_->send(socket, parts);
  if (encrypted_ == 0)
    for (auto part : parts) {
      const auto count = session_.write(part);
      if (!count) {
        errno = EPROTO;
        return -1;
      }
      encrypted_ += *count;
      if (*count < part.size())
        break;
    }
  if (!flush(socket))
    return -1;
  return static_cast<ssize_t>(std::exchange(encrypted_, 0));
}

} // namespace ringmaster
