#include "actors/links/link_sender.hpp"

#include "actors/scheduling/awake_clock.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/links/link_checksum.hpp"
#include "runtime/logging/log.hpp"
#include "runtime/memory/mapped_memory.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/uio.h>
#include <utility>

namespace ringmaster {

void link_exposures::add(const transfer_key& key, std::shared_ptr<exposed_block> block) {
  std::lock_guard guard{mutex_};
  blocks_[key] = std::move(block);
}

void link_exposures::remove(const transfer_key& key, const exposed_block& block) {
  std::lock_guard guard{mutex_};
  if (auto i = blocks_.find(key); i != blocks_.end() && i->second.get() == &block)
    blocks_.erase(i);
}

std::shared_ptr<exposed_block> link_exposures::find(const transfer_key& key, device_id device) const {
  std::lock_guard guard{mutex_};
  auto i = blocks_.find(key);
  return i != blocks_.end() && i->second->window.device == device ? i->second : nullptr;
}

link_exposure::link_exposure(std::shared_ptr<link_exposures> all, const transfer_key& key, const device_window& window)
  : all_(std::move(all)), key_(key), block_(std::make_shared<exposed_block>()) {
  block_->window = window;
  all_->add(key_, block_);
}

link_exposure::~link_exposure() {
  block_->withdrawn = true;
  all_->remove(key_, *block_);
}

link_sender::link_sender(io_loop& loop, greeting_desk::admitted made, link_exposures& exposures, uint64_t process,
                         link_counts& counts)
  : loop_(loop), socket_(std::move(made.socket)), tls_(std::move(made.tls)), session_(std::move(made.with)),
    exposures_(exposures), process_(process), counts_(counts), number_(loop.watch(socket_.descriptor, EPOLLIN, *this)),
    greet_until_(awake_clock::actor_now() + std::chrono::seconds{5}) {}

link_sender::~link_sender() {
  close();
}

void link_sender::close() {
  if (closed())
    return;
  loop_.forget(socket_.descriptor, number_);
  socket_ = open_socket{};
  requests_.clear();
  frame_.reset();
}

void link_sender::refuse(const std::string& why) {
  ++counts_.strangers_refused;
  if (auto number = counts_.stranger_warnings.happened(awake_clock::actor_now()); number > 0)
    spdlog::warn("a bulk connection of {} was closed: {}{}", other_end_text(socket_.descriptor), why,
                 number == 1 ? "" : fmt::format("; so were {} others since the last such warning", number - 1));
  close();
}

void link_sender::on_time(time_point now) {
  if (!closed() && now >= due())
    refuse("it has not said hello within 5 s");
}

void link_sender::on_ready(uint32_t events) {
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
    read();
  if (!closed())
    serve();
}

void link_sender::read() {
  const auto room = std::span{words_}.subspan(words_bytes_);
  auto count = tls_ ? tls_->receive_some(socket_.descriptor, room)
                    : ::recv(socket_.descriptor, room.data(), room.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (count <= 0)
    return close(); // the side that made it decides whether to make it again
  words_bytes_ += static_cast<size_t>(count);
  take_words();
  if (!closed() && tls_ && tls_->has_more())
    loop_.call_again(number_);
}

ssize_t link_sender::send(std::span<const std::span<const std::byte>> parts) {
  if (tls_) {
    const auto result = tls_->send(socket_.descriptor, parts);
    const auto* block = frame_ ? frame_->block.get() : nullptr;
    if (block == nullptr || !block->window.memory->damage())
      return result;
    errno = EFAULT; // it was read by this process, and not by the system
    return -1;
  }
  std::array<iovec, 3> pieces{};
  ensure(parts.size() <= pieces.size(), "a frame is sent in a few parts");
  for (size_t i = 0; i < parts.size(); ++i)
    pieces[i] = {const_cast<std::byte*>(parts[i].data()), parts[i].size()};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = parts.size();
  return ::sendmsg(socket_.descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void link_sender::take_words() {
  size_t taken = 0;
  auto next = [&](size_t size) -> const std::byte* {
    if (closed() || words_bytes_ - taken < size)
      return nullptr;
    return words_.data() + std::exchange(taken, taken + size);
  };
  if (!greeted_) {
    auto* wire = next(link_hello::wire_bytes);
    if (wire == nullptr)
      return;
    auto hello = decode_hello(std::span<const std::byte, link_hello::wire_bytes>{wire, link_hello::wire_bytes});
    if (!hello)
      return refuse(render(hello.error()));
    if (hello->process != process_)
      return refuse("it looks for another process, which may have been here before");
    greeted_ = true;
    hello_ = encode(link_hello{process_});
    hello_left_ = hello_.size();
  }
  while (auto* wire = next(link_request::wire_bytes)) {
    auto x = decode_request(std::span<const std::byte, link_request::wire_bytes>{wire, link_request::wire_bytes});
    if (!x)
      return refuse(render(x.error()));
    take(*x);
  }
  if (closed())
    return;
  ensure(taken <= words_bytes_, "no more words are taken than have come");
  std::memmove(words_.data(), words_.data() + taken, words_bytes_ - taken);
  words_bytes_ -= taken;
}

void link_sender::take(const link_request& x) {
  if (x.what == link_request::kind::cancel) {
    std::erase_if(requests_, [&](auto& y) { return y.what.id == x.id; });
    return;
  }
  if (requests_.size() >= requests_max)
    return refuse(fmt::format("it wants {} blocks at once, the limit", requests_max));
  auto block = exposures_.find(x.key, x.device);
  if (block && (x.offset > block->window.bytes || x.bytes > block->window.bytes - x.offset))
    return refuse(fmt::format("it wants {} bytes at offset {} of a block of {}", x.bytes, x.offset,
                              block->window.bytes));
  requests_.push_back({x, std::move(block)});
  ensure(requests_.size() <= requests_max, "a connection has a limit of requests");
}

bool link_sender::next_frame() {
  ensure(!frame_, "one frame is sent at a time");
  if (requests_.empty())
    return false;
  auto current = std::move(requests_.front());
  requests_.pop_front();
  auto& wanted = current.what;
  ensure(current.sent < wanted.bytes, "a request that waits has bytes left");
  link_frame frame;
  frame.id = wanted.id;
  frame.offset = wanted.offset + current.sent;
  outgoing_frame result;
  auto* block = current.block.get();
  std::span<const std::byte> bytes;
  if (block == nullptr || block->withdrawn) {
    frame.what = link_frame::kind::gone;
  } else if (auto size = std::min<uint64_t>(wanted.bytes - current.sent,
                                            link_frame::bytes_max / wanted.unit * wanted.unit);
             auto source = block->window.memory->at_runtime(block->window.address + frame.offset, size)) {
    frame.what = block->damaged ? link_frame::kind::damaged : link_frame::kind::bytes;
    bytes = *source;
  } else {
    frame.what = link_frame::kind::damaged;
  }
  if (frame.has_bytes()) {
    ensure(!bytes.empty() && bytes.size() <= link_frame::bytes_max, "a frame of bytes has some");
    frame.bytes = static_cast<uint32_t>(bytes.size());
    if (wanted.checksums) {
      frame.what = link_frame::kind::checked_bytes;
      frame.checksum = link_checksum(bytes);
    }
    result.bytes = bytes;
    result.block = current.block;
    ++block->frames;
    current.sent += bytes.size();
    if (current.sent < wanted.bytes)
      requests_.push_back(std::move(current)); // requests alternate
  }
  result.header = encode(frame);
  frame_ = std::move(result);
  return true;
}

void link_sender::serve() {
  constexpr uint64_t turn_bytes = 1u << 20; // then it is other connections' turn
  bool blocked = false;
  for (uint64_t sent = 0; greeted_ && !blocked && sent < turn_bytes && (hello_left_ > 0 || frame_ || next_frame());) {
    std::array<std::span<const std::byte>, 3> parts;
    size_t count = 0;
    auto add = [&](std::span<const std::byte> part) {
      if (!part.empty())
        parts[count++] = part;
    };
    add(std::span{hello_}.last(hello_left_));
    if (frame_) {
      auto header = std::min<uint64_t>(frame_->sent, frame_->header.size());
      add(std::span{frame_->header}.subspan(header));
      add(frame_->bytes.subspan(frame_->sent - header));
    }
    auto result = send(std::span{parts}.first(count));
    if (result < 0 && errno == EINTR)
      continue;
    if (result < 0 && errno == EAGAIN) {
      blocked = true;
      break;
    }
    if (result < 0) {
      if (errno == EFAULT && frame_ && frame_->block) {
        frame_->block->damaged = true;
        log_error({.device = frame_->block->window.device.value},
                  "device {:#x}: the system cannot read its memory, which was truncated or whose disk is full",
                  frame_->block->window.device);
      }
      return close();
    }
    auto rest = static_cast<size_t>(result);
    sent += rest;
    auto of_hello = std::min(rest, hello_left_);
    hello_left_ -= of_hello;
    rest -= of_hello;
    ensure(rest == 0 || (frame_ && rest <= frame_->header.size() + frame_->bytes.size() - frame_->sent),
           "no more is sent than there was to send");
    if (frame_) {
      frame_->sent += rest;
      if (frame_->sent == frame_->header.size() + frame_->bytes.size()) {
        counts_.bytes_sent += frame_->bytes.size();
        frame_.reset();
      }
    }
  }
  bool more = hello_left_ > 0 || frame_ || !requests_.empty();
  if (std::exchange(writable_wanted_, more) != more)
    loop_.change(socket_.descriptor, number_, more ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

} // namespace ringmaster
