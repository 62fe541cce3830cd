#include "actors/links/socket_greeting.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"

#include <array>
#include <cerrno>
#include <poll.h>

namespace ringmaster {

void socket_greeting::send(int socket, std::span<const std::byte> bytes) {
  if (tls_ == nullptr)
    send_at_once(socket, bytes);
  else
    tls_->send(socket, bytes);
}

caf::expected<bool> socket_greeting::shake_hands(int socket) {
  switch (tls_->handshake(socket)) {
    case tls_session::step::more: return false;
    case tls_session::step::failed: return state_.not_secured(tls_->failure().text);
    case tls_session::step::done: break;
  }
  shakes_hands_ = false;
  send(socket, state_.secured(tls_->peer()).bytes);
  return true;
}

std::optional<caf::expected<socket_greeting::result>> socket_greeting::advance(int socket) {
  std::array<std::byte, std::max(challenge_bytes, verdict_bytes)> bytes;
  for (;;) {
    if (shakes_hands_) {
      auto done = shake_hands(socket);
      if (!done)
        return std::move(done.error());
      if (!*done)
        return std::nullopt;
    }
    const auto room = std::span{bytes}.first(state_.wanted());
    const auto count = tls_ == nullptr ? ::recv(socket, room.data(), room.size(), MSG_DONTWAIT)
                                       : tls_->receive(socket, room);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 && errno == EAGAIN)
      return std::nullopt;
    if (count < 0 && errno == EPROTO) // an alert, for example: the other end has seen our certificate later than we its
      return state_.not_secured(tls_->failure().text);
    if (count <= 0)
      return state_.cut_short();
    auto step = state_.take(room.first(static_cast<size_t>(count)));
    if (auto* failed = std::get_if<greeting_initiator::failed>(&step)) {
      if (!failed->last_words.empty())
        send(socket, failed->last_words);
      return std::move(failed->why);
    }
    if (auto* admitted = std::get_if<greeting_initiator::admitted>(&step)) {
      if (tls_ != nullptr && !tls_->greeted(admitted->as))
        return state_.not_secured("sent more than a greeting, before this process had said anything");
      return result{std::move(admitted->with), std::move(tls_)};
    }
    if (auto* begins = std::get_if<greeting_initiator::secure>(&step)) {
      tls_ = std::make_unique<tls_channel>(std::move(begins->own), hosts_, limits_);
      shakes_hands_ = true;
    }
    if (const auto* answer = std::get_if<greeting_initiator::answer>(&step))
      send(socket, answer->bytes);
  }
}

caf::expected<socket_greeting::result> greet(int socket, socket_greeting greeting,
                                             const std::function<caf::error()>& goes_on) {
  constexpr int look_ms = 20;
  for (;;) {
    if (auto done = greeting.advance(socket))
      return std::move(*done);
    RETURN_ERROR(goes_on());
    pollfd waits{socket, POLLIN, 0};
    ::poll(&waits, 1, look_ms);
  }
}

} // namespace ringmaster
