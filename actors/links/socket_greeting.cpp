#include "actors/links/socket_greeting.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"

#include <array>
#include <cerrno>
#include <poll.h>

namespace ringmaster {

std::optional<caf::expected<session>> socket_greeting::advance(int socket) {
  std::array<std::byte, std::max(challenge_bytes, verdict_bytes)> bytes;
  for (;;) {
    const auto count = ::recv(socket, bytes.data(), state_.wanted(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 && errno == EAGAIN)
      return std::nullopt;
    if (count <= 0)
      return state_.cut_short();
    auto step = state_.take(std::span{bytes}.first(static_cast<size_t>(count)));
    if (auto* failed = std::get_if<greeting_initiator::failed>(&step)) {
      send_at_once(socket, failed->last_words);
      return std::move(failed->why);
    }
    if (auto* admitted = std::get_if<greeting_initiator::admitted>(&step))
      return std::move(admitted->with);
    if (const auto* answer = std::get_if<greeting_initiator::answer>(&step))
      if (!send_at_once(socket, answer->bytes))
        return state_.cut_short();
  }
}

caf::expected<session> greet(int socket, socket_greeting greeting, const std::function<caf::error()>& goes_on) {
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
