// What comes over a connection that was made: frames, and the bytes in them.
#include "actors/links/link_receiver.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/links/link_checksum.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>

#include <sys/uio.h>

namespace ringmaster {

void link_receiver::read() {
  constexpr int reads_a_turn = 8; // then it is other connections' turn
  for (int i = 0; i < reads_a_turn && state_ == state::live; ++i)
    if (!(frame_ ? read_bytes() : read_header()))
      return;
}

bool link_receiver::took(ssize_t count, uint64_t frame_left) {
  if (count < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  if (count <= 0)
    return broke(count == 0
                   ? "was closed by the other end"
                   : fmt::format("broke ({})", errno == EPROTO && tls_ ? tls_->failure().text : std::strerror(errno)));
  heard_ = awake_clock::actor_now();
  silences_ = 0;
  fruitful_ = true;
  auto of_frame = std::min<uint64_t>(static_cast<uint64_t>(count), frame_left);
  frame_got_ += of_frame;
  header_got_ += static_cast<uint64_t>(count) - of_frame;
  ensure(header_got_ <= header_.size(), "no more is received than was asked for");
  return true;
}

bool link_receiver::read_header() {
  if (header_got_ < header_.size() && !took(receive(std::span{header_}.subspan(header_got_)), 0))
    return false;
  return header_got_ < header_.size() || begin_frame();
}

bool link_receiver::begin_frame() {
  ensure(!frame_, "one frame is received at a time");
  header_got_ = 0;
  auto frame = decode_frame(header_);
  if (!frame)
    return broke("brought a malformed frame: " + render(frame.error()));
  if (frame->id == 0 || frame->id >= next_id_)
    return broke(fmt::format("brought a frame of a request {} that was not made", frame->id));
  auto i = under_way_.find(frame->id);
  frame_got_ = 0;
  frame_put_ = 0;
  // A fetch may have been revoked without our knowing it yet, and then its range may be in other use.
  part_ = i != under_way_.end() && i->second.fetch->wanted() ? i->second : wanted_part{};
  if (!frame->has_bytes()) {
    if (part_.fetch == nullptr)
      return true;
    auto fetch = std::exchange(part_, {}).fetch;
    cancel(*fetch);
    if (frame->what == link_frame::kind::gone)
      fetch->end(link_fetch::outcome::gone);
    else
      fetch->end(
        link_fetch::outcome::damaged,
        malformed(fmt::format("the memory file of device {:#x} was truncated, or its disk is full", fetch->device())));
    return true;
  }
  if (part_.fetch == nullptr)
    ++counts_.late_frames;
  else if (frame->offset != part_.range().next || frame->bytes > part_.range().end - part_.range().next
           || frame->bytes % part_.fetch->unit() != 0)
    return broke(fmt::format("brought {} bytes from offset {} where others were wanted", frame->bytes, frame->offset));
  frame_ = *frame;
  return true;
}

bool link_receiver::read_bytes() {
  auto left = frame_->bytes - frame_got_;
  ssize_t count = -1;
  auto receive_bytes = [&](std::byte* to) {
    if (tls_) {
      count = receive({to, left});
      return;
    }
    std::array<iovec, 2> pieces{{{to, left}, {header_.data(), header_.size()}}}; // a call less for each frame
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    count = ::recvmsg(socket_.descriptor, &message, MSG_DONTWAIT);
  };
  bool plain = part_.fetch != nullptr && part_.fetch->is_plain();
  if (plain
      && !part_.fetch->write([&](const block_sink& sink) { receive_bytes(sink.out + frame_->offset + frame_got_); })) {
    part_ = {};
    ++counts_.late_frames;
    plain = false;
    count = -1;
  }
  if (!plain) {
    if (slab_.empty())
      slab_.resize(link_frame::bytes_max);
    if (count < 0)
      receive_bytes(slab_.data() + frame_got_);
  }
  if (!took(count, left))
    return false;
  if (part_.fetch != nullptr && !plain && frame_->what == link_frame::kind::bytes
      && !part_.fetch->write([&](const block_sink& sink) { put_elements(sink); })) {
    part_ = {};
    ++counts_.late_frames;
  }
  if (plain && frame_->what == link_frame::kind::bytes)
    part_.range().next = frame_->offset + frame_got_;
  return frame_got_ < frame_->bytes || end_frame();
}

void link_receiver::put_elements(const block_sink& sink) {
  auto whole = frame_got_ / part_.fetch->unit() * part_.fetch->unit();
  ensure(frame_put_ <= whole && whole <= frame_->bytes, "elements are stored in order");
  sink.put(frame_->offset + frame_put_, {slab_.data() + frame_put_, whole - frame_put_});
  frame_put_ = whole;
  part_.range().next = frame_->offset + frame_put_;
}

bool link_receiver::end_frame() {
  auto frame = *std::exchange(frame_, std::nullopt);
  auto part = std::exchange(part_, {});
  ensure(frame_got_ == frame.bytes, "a frame ends when all of its bytes have come");
  if (part.fetch == nullptr)
    return true;
  if (frame.what == link_frame::kind::checked_bytes) {
    bool right = true;
    auto check = [&](const block_sink& sink) {
      auto* bytes = part.fetch->is_plain() ? sink.out + frame.offset : slab_.data();
      right = link_checksum({bytes, frame.bytes}) == frame.checksum;
      if (right && !part.fetch->is_plain())
        sink.put(frame.offset, {bytes, frame.bytes});
    };
    if (!part.fetch->write(check)) {
      ++counts_.late_frames;
      return true;
    }
    if (!right) {
      ++counts_.damaged_frames;
      return broke("brought bytes with another checksum than they had");
    }
    part.range().next = frame.offset + frame.bytes;
  }
  counts_.bytes_received += frame.bytes;
  ensure(part.range().next <= part.range().end, "no more bytes come than were wanted");
  if (part.range().next == part.range().end) {
    const auto erased = under_way_.erase(frame.id);
    ensure(erased <= 1, "a request is answered once");
    auto& parts = part.fetch->parts;
    if (std::all_of(parts.begin(), parts.end(), [](auto& x) { return x.next == x.end; }))
      part.fetch->end(link_fetch::outcome::done);
  }
  return true;
}

} // namespace ringmaster
