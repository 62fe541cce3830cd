#include "actors/links/authenticated_records.hpp"

#include "runtime/invariants/ensure.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/uio.h>

namespace ringmaster {

namespace {

constexpr size_t parts_max = 4;

/// The first `bytes` of some parts.
size_t take_parts(std::span<const std::span<const std::byte>> parts, size_t bytes,
                  std::span<std::span<const std::byte>> out) {
  size_t count = 0;
  for (auto part : parts)
    if (const auto taken = part.first(std::min(part.size(), bytes)); !taken.empty()) {
      ensure(count < out.size(), "a record is sent in a few parts");
      out[count++] = taken;
      bytes -= taken.size();
    }
  return count;
}

ssize_t retried(auto&& call) {
  for (;;)
    if (const ssize_t count = call(); count >= 0 || errno != EINTR)
      return count;
}

} // namespace

bool authenticated_records::start(std::span<const std::span<const std::byte>> parts) {
  size_t bytes = 0;
  for (auto part : parts)
    bytes += part.size();
  bytes = std::min(bytes, bytes_max);
  if (bytes == 0)
    return false;
  const auto length = static_cast<uint32_t>(bytes);
  std::memcpy(out_.data(), &length, sizeof length);
  std::array<std::span<const std::byte>, parts_max + 1> whole{std::span{out_}.first(sizeof length)};
  const auto count = take_parts(parts, bytes, std::span{whole}.subspan(1));
  const auto tag = sends_.next(std::span{whole}.first(count + 1));
  std::ranges::copy(tag, out_.begin() + sizeof length);
  out_left_ = out_.size();
  sent_left_ = bytes;
  return true;
}

ssize_t authenticated_records::send(int socket, std::span<const std::span<const std::byte>> parts) {
  if (sent_left_ == 0 && !start(parts))
    return 0;
  for (;;) {
    std::array<std::span<const std::byte>, parts_max + 1> rest{std::span{out_}.last(out_left_)};
    auto count = take_parts(parts, sent_left_, std::span{rest}.subspan(1)) + 1;
    std::array<iovec, parts_max + 1> pieces{};
    for (size_t i = 0; i < count; ++i)
      pieces[i] = {const_cast<std::byte*>(rest[i].data()), rest[i].size()};
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const auto sent = retried([&] { return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT); });
    if (sent < 0)
      return sent;
    const auto of_header = std::min(static_cast<size_t>(sent), out_left_);
    out_left_ -= of_header;
    const auto bytes = static_cast<size_t>(sent) - of_header;
    ensure(bytes <= sent_left_, "no more is sent than a record has");
    sent_left_ -= bytes;
    if (bytes > 0)
      return static_cast<ssize_t>(bytes);
  }
}

ssize_t authenticated_records::receive_some(int socket, std::span<std::byte> to) {
  const auto forgery = [&] {
    forged_ = true;
    errno = EPROTO;
    return ssize_t{-1};
  };
  while (!has_more()) {
    if (forged_)
      return forgery();
    come_ = given_ = 0;
    if (in_got_ < in_.size()) {
      const auto count = retried([&] {
        return ::recv(socket, in_.data() + in_got_, in_.size() - in_got_, MSG_DONTWAIT);
      });
      if (count <= 0)
        return count;
      in_got_ += static_cast<size_t>(count);
      continue;
    }
    uint32_t length = 0;
    std::memcpy(&length, in_.data(), sizeof length);
    if (length == 0 || length > bytes_max)
      return forgery();
    if (record_.empty())
      record_.resize(bytes_max);
    const auto count = retried([&] { return ::recv(socket, record_.data() + got_, length - got_, MSG_DONTWAIT); });
    if (count <= 0)
      return count;
    got_ += static_cast<size_t>(count);
    if (got_ < length)
      continue;
    const std::span<const std::byte> parts[] = {std::span{in_}.first(sizeof length), std::span{record_}.first(length)};
    const auto right = receives_.next(parts);
    if (::CRYPTO_memcmp(right.data(), in_.data() + sizeof length, right.size()) != 0)
      return forgery();
    come_ = std::exchange(got_, 0);
    in_got_ = 0;
  }
  const auto count = std::min(to.size(), come_ - given_);
  std::memcpy(to.data(), record_.data() + given_, count);
  given_ += count;
  return static_cast<ssize_t>(count);
}

} // namespace ringmaster
