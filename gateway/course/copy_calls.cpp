#include "gateway/course/copy_calls.hpp"

#include "gateway/course/copy_wire.hpp"
#include "gateway/course/device_calls.hpp"
#include "messages/errc.hpp"
#include "runtime/health/copy_pace.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <vector>

namespace ringmaster::gateway {

namespace {

/// A Memcpy in pieces, of which a few are under way: messages for others would wait for a large one. Its error is the
/// call's.
class piecewise_copy : public std::enable_shared_from_this<piecewise_copy> {
public:
  /// `address` is the cluster's.
  piecewise_copy(course_desk_state& desk, call_pointer call, course_copy what, device_id device, uint64_t address)
    : desk_(desk), call_(std::move(call)), what_(std::move(what)), device_(device), address_(address) {}

  void run() {
    do
      send_piece();
    while (next_ < what_.bytes && under_way_ < pace_.under_way_max());
  }

private:
  /// Pieces end where huge pages of the device's memory do.
  uint64_t piece_bytes() const {
    return std::min(what_.bytes - next_, pace_.bytes() - (address_ + next_) % pace_.bytes());
  }

  void send_piece() {
    const auto bytes = piece_bytes();
    gpu_sim::MemcpyRequest request;
    byte_block block;
    if (what_.to_device) {
      auto& to = *request.mutable_hosttodevice();
      to.mutable_dstdeviceid()->set_value(device_.value);
      to.mutable_dstmemaddr()->set_value(address_ + next_);
      block = what_.data.part(next_, bytes);
    } else {
      auto& from = *request.mutable_devicetohost();
      from.mutable_srcdeviceid()->set_value(device_.value);
      from.mutable_srcmemaddr()->set_value(address_ + next_);
      from.set_numbytes(bytes);
    }
    const auto index = parts_.size();
    parts_.emplace_back();
    next_ += bytes;
    ++under_way_;
    const auto began = desk_.now();
    desk_.self->request(desk_.options.coordinator, call_->left(began), std::move(request), std::move(block))
      .then([me = shared_from_this(), index, bytes,
             began](const gpu_sim::MemcpyResponse& x,
                    const byte_block& part) { me->took(error_in(x), index, bytes, part, began); },
            [me = shared_from_this()](const caf::error& problem) {
              me->call_->fail(course_desk_state::no_answer(problem));
              me->has_failed_ = true;
            });
  }

  void took(caf::error problem, size_t index, uint64_t bytes, const byte_block& part,
            caf::actor_clock::time_point began) {
    ensure(under_way_ > 0, "a piece that is answered was under way");
    --under_way_;
    if (has_failed_)
      return;
    if (!problem && !what_.to_device && part.size() != bytes)
      problem = make_error(errc::corrupt,
                           fmt::format("device 0x{:x} answers with {} of {} bytes", device_, part.size(), bytes));
    if (problem) {
      has_failed_ = true;
      return call_->fail(problem);
    }
    pace_.took(desk_.now() - began);
    parts_[index] = part;
    while (next_ < what_.bytes && under_way_ < pace_.under_way_max())
      send_piece();
    if (under_way_ == 0)
      call_->answer(what_.to_device ? copied_to_device() : copied_to_host(parts_));
  }

  course_desk_state& desk_;
  call_pointer call_;
  course_copy what_;
  device_id device_;
  uint64_t address_;
  copy_pace pace_;
  std::vector<byte_block> parts_;
  uint64_t next_ = 0; ///< The first byte of the next piece.
  size_t under_way_ = 0;
  bool has_failed_ = false;
};

/// A large copy is refused as a whole where its end is not in the memory: its first pieces would have been written.
caf::error check_range(const course_desk_state& desk, device_id device, uint64_t address, uint64_t bytes) {
  const auto* memory = desk.devices->memory_of(device);
  if (memory == nullptr || (address >= memory->min && address <= memory->max && bytes <= memory->max - address))
    return caf::none;
  return make_error(errc::out_of_range,
                    fmt::format("device 0x{:x}: {:#x} bytes at {:#x} are not within its memory, which is "
                                "[{:#x}, {:#x})",
                                device, bytes, address, memory->min, memory->max));
}

void copy_with(course_desk_state& desk, const call_pointer& call, course_copy what, device_id device) {
  auto address = desk.devices->address(device, what.address, what.bytes);
  if (!address)
    return call->fail(address.error());
  if (auto problem = check_range(desk, device, *address, what.bytes))
    return call->fail(problem);
  std::make_shared<piecewise_copy>(desk, call, std::move(what), device, *address)->run();
}

} // namespace

void copy(course_desk_state& desk, const call_pointer& call) {
  auto read = read_copy(call->request());
  if (!read)
    return call->fail(read.error());
  call->request().Clear();
  auto what = std::make_shared<course_copy>(std::move(*read));
  const auto bytes_max = desk.form().message_bytes_max;
  if (what->bytes > bytes_max)
    return call->fail(make_error(errc::too_large, fmt::format("Memcpy of {}, and a message holds {} at most "
                                                              "(message-max): copy in parts",
                                                              bytes_text(what->bytes), bytes_text(bytes_max))));
  if (auto problem = what->to_device ? caf::error{} : call->ticket().reserve(what->bytes))
    return call->fail(problem);
  auto then = [&desk, call, what](device_id device) { copy_with(desk, call, std::move(*what), device); };
  if (call->origin().place)
    return with_called_device(desk, call, then);
  desk.with_device(
    call, [&desk, id = what->device] { return desk.devices->with_id(id); }, then);
}

} // namespace ringmaster::gateway
