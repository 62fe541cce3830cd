#include "actors/coordination/spare_calls.hpp"

#include "actors/calls/answers.hpp"
#include "actors/calls/request_limit.hpp"
#include "actors/coordination/coordinator.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

spare_calls::spare_calls(coordinator_state& coordinator) : coordinator_(coordinator), desk_(coordinator.devices) {}

caf::result<proto::SpareResponse, device_handle> spare_calls::request(const proto::SpareRequest& x) {
  auto self = coordinator_.self;
  auto answer = self->make_response_promise<proto::SpareResponse, device_handle>();
  auto number = coordinator_.next_number();
  promises_[number] = answer;
  desk_.asked(number, x);
  self->delayed_send(self, request_limit(x.timeout_ns()), atom::expire_v, number);
  act(number, desk_.next(number, wanted(number)));
  return answer;
}

bool spare_calls::wanted(uint64_t number) const {
  return coordinator_.communicators.find(communicator_id{desk_.request(number).comm_id()}) != nullptr;
}

void spare_calls::serve() {
  for (auto number : desk_.waiting())
    if (desk_.has(number))
      act(number, desk_.next(number, wanted(number)));
}

bool spare_calls::expire(uint64_t number) {
  if (!desk_.has(number))
    return false;
  act(number, desk_.expired(number, wanted(number)));
  return true;
}

void spare_calls::act(uint64_t number, const spare_desk::step& step) {
  using kind = spare_desk::step::kind;
  if (step.what == kind::wait)
    return;
  if (step.what == kind::restore)
    return restore(number, step.device);
  proto::SpareResponse answer;
  device_handle handle;
  auto device = coordinator_.devices.find(step.device);
  ensure(step.what == kind::refuse || device != nullptr, "a spare that is handed over is in the cluster");
  if (step.what == kind::refuse) {
    answer = refusal<proto::SpareResponse>(step.problem);
  } else {
    auto& request = desk_.request(number);
    answer.set_success(true);
    *answer.mutable_device() = device->metadata;
    answer.set_inputs_restored(!step.problem);
    answer.set_inputs_error(step.problem ? render(step.problem) : std::string{});
    handle = device->handle;
    coordinator_.place_filled(id_of(request.lost()), communicator_id{request.comm_id()});
  }
  desk_.answered(number);
  auto asker = promises_.extract(number);
  ensure(!asker.empty(), "a request for a spare is answered once");
  asker.mapped().deliver(std::move(answer), std::move(handle));
}

void spare_calls::copied(uint64_t number, const caf::error& problem) {
  act(number, desk_.copied(number, problem, wanted(number)));
}

void spare_calls::restore(uint64_t number, device_id id) {
  auto& x = desk_.request(number);
  size_t pending = 0;
  caf::error missing;
  const bool lives = x.leaving() && coordinator_.devices.find(id_of(x.lost())) != nullptr;
  for (auto& input : x.inputs()) {
    if (lives) {
      ++pending;
      hand_on(number, x.lost(), id, input, 0);
      continue;
    }
    auto sent = send_copies(number, id, input);
    if (!sent) {
      missing = std::move(sent.error());
      break;
    }
    pending += *sent;
  }
  act(number, desk_.restoring(number, pending, std::move(missing), wanted(number)));
}

caf::expected<size_t> spare_calls::send_copies(uint64_t number, device_id id, const proto::SpareRequest::Range& range) {
  auto& lost = desk_.request(number).lost();
  auto& device = *coordinator_.devices.find(id);
  auto handle = caf::actor_cast<device_actor>(device.handle.device);
  auto moved = device.metadata.minmemaddr().value() - lost.minmemaddr().value();
  TRY(pieces, coordinator_.copies.find(id_of(lost), range.address(), range.bytes()));
  for (auto& piece : *pieces) {
    gpu_sim::MemcpyRequest copy;
    copy.mutable_hosttodevice()->mutable_dstmemaddr()->set_value(piece.address + moved);
    auto block = piece.block.part(piece.offset, piece.bytes);
    coordinator_.copies.remember_part(id, piece.address + moved, piece.block, piece.offset, piece.bytes);
    coordinator_.self->request(handle, coordinator_.options.request_limit, std::move(copy), std::move(block))
      .then(
        [this, id, number](const gpu_sim::MemcpyResponse& y, const byte_block&) {
          if (!y.error().empty())
            coordinator_.copies.forget(id);
          copied(number, error_in(y));
        },
        [this, id, number](const caf::error& problem) {
          coordinator_.copies.forget(id);
          if (problem == caf::sec::request_timeout)
            coordinator_.members.fence(id, {"it did not take a copy from the host in time", "coordinator",
                                            coordinator_.now_ns()});
          copied(number, problem);
        });
  }
  return pieces->size();
}

void spare_calls::hand_on(uint64_t number, const gpu_sim::DeviceMetadata& from, device_id to,
                          const proto::SpareRequest::Range& range, uint64_t done) {
  constexpr uint64_t piece_bytes_max = 1u << 20; // a large message would delay all others on its connection
  ensure(done <= range.bytes(), "a copy stays within its range");
  auto done_so_far = [this, number](const caf::error& problem) {
    if (desk_.has(number))
      copied(number, problem);
  };
  auto self = coordinator_.self;
  auto giver = coordinator_.devices.find(id_of(from)), taker = coordinator_.devices.find(to);
  if (giver == nullptr || taker == nullptr)
    return done_so_far(make_error(errc::device_lost, fmt::format("device 0x{:x} died while its inputs were copied",
                                                                 giver == nullptr ? id_of(from) : to)));
  auto bytes = std::min(piece_bytes_max, range.bytes() - done);
  gpu_sim::MemcpyRequest out, in;
  out.mutable_devicetohost()->mutable_srcmemaddr()->set_value(range.address() + done);
  out.mutable_devicetohost()->set_numbytes(bytes);
  in.mutable_hosttodevice()->mutable_dstmemaddr()->set_value(range.address() + done - from.minmemaddr().value()
                                                             + taker->metadata.minmemaddr().value());
  auto taken = [=, this](const gpu_sim::MemcpyResponse& y, const byte_block&) {
    if (!y.error().empty() || done + bytes == range.bytes())
      return done_so_far(error_in(y));
    hand_on(number, from, to, range, done + bytes);
  };
  auto limit = coordinator_.options.request_limit;
  self->request(caf::actor_cast<device_actor>(giver->handle.device), limit, std::move(out), byte_block{})
    .then(
      [=, this, to_handle = caf::actor_cast<device_actor>(taker->handle.device)](const gpu_sim::MemcpyResponse& y,
                                                                                 const byte_block& block) {
        if (!y.error().empty())
          return done_so_far(error_in(y));
        self->request(to_handle, coordinator_.options.request_limit, in, block).then(taken, done_so_far);
      },
      done_so_far);
}

} // namespace ringmaster
