// The COORDINATOR's part in the policy `replace`: asks for spares wait here, and the host's copies go to those found.
#include "actors/calls/answers.hpp"
#include "actors/calls/request_limit.hpp"
#include "actors/coordination/coordinator.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

caf::result<proto::SpareResponse, device_handle> coordinator_state::spare(const proto::SpareRequest& x) {
  auto promise = self->make_response_promise<proto::SpareResponse, device_handle>();
  auto number = ++waits_;
  spare_promises_[number] = promise;
  spares_.asked(number, x);
  self->delayed_send(self, request_limit(x.timeout_ns()), atom::expire_v, number);
  act(number, spares_.next(number, spare_wanted(number)));
  return promise;
}

bool coordinator_state::spare_wanted(uint64_t number) const {
  return communicators.find(communicator_id{spares_.request(number).comm_id()}) != nullptr;
}

void coordinator_state::serve_spares() {
  for (auto number : spares_.waiting())
    if (spares_.has(number))
      act(number, spares_.next(number, spare_wanted(number)));
  serve_drains();
}

void coordinator_state::act(uint64_t number, const spare_desk::step& step) {
  using kind = spare_desk::step::kind;
  if (step.what == kind::wait)
    return;
  if (step.what == kind::restore)
    return restore(number, step.device);
  proto::SpareResponse answer;
  device_handle handle;
  auto device = devices.find(step.device);
  if (step.what == kind::refuse || device == nullptr) {
    answer = refusal<proto::SpareResponse>(step.problem);
  } else {
    auto& request = spares_.request(number);
    answer.set_success(true);
    *answer.mutable_device() = device->metadata;
    answer.set_inputs_restored(!step.problem);
    answer.set_inputs_error(step.problem ? render(step.problem) : std::string{});
    handle = device->handle;
    place_filled(id_of(request.lost()), communicator_id{request.comm_id()});
  }
  spares_.answered(number);
  auto promise = std::move(spare_promises_.at(number));
  spare_promises_.erase(number);
  promise.deliver(std::move(answer), std::move(handle));
}

void coordinator_state::restore(uint64_t number, device_id id) {
  auto& x = spares_.request(number);
  auto& device = *devices.find(id);
  auto handle = caf::actor_cast<device_actor>(device.handle.device);
  auto moved = device.metadata.minmemaddr().value() - x.lost().minmemaddr().value();
  auto copied = [this, number](const caf::error& problem) {
    act(number, spares_.copied(number, problem, spare_wanted(number)));
  };
  size_t pending = 0;
  caf::error missing;
  bool lives = x.leaving() && devices.find(id_of(x.lost())) != nullptr;
  for (auto& input : x.inputs()) {
    if (lives) {
      ++pending;
      hand_on(number, x.lost(), id, input, 0);
      continue;
    }
    auto pieces = copies.find(id_of(x.lost()), input.address(), input.bytes());
    if (!pieces) {
      missing = std::move(pieces.error());
      break;
    }
    for (auto& piece : *pieces) {
      gpu_sim::MemcpyRequest copy;
      copy.mutable_hosttodevice()->mutable_dstmemaddr()->set_value(piece.address + moved);
      auto block = piece.block.part(piece.offset, piece.bytes);
      copies.remember_part(id, piece.address + moved, piece.block, piece.offset, piece.bytes);
      ++pending;
      self->request(handle, options.request_limit, std::move(copy), std::move(block))
        .then(
          [this, id, copied](const gpu_sim::MemcpyResponse& y, const byte_block&) {
            if (!y.error().empty())
              copies.forget(id);
            copied(error_in(y));
          },
          [this, id, copied](const caf::error& problem) {
            copies.forget(id);
            if (problem == caf::sec::request_timeout)
              fence(id, {"it did not take a copy from the host in time", "coordinator", now_ns()});
            copied(problem);
          });
    }
  }
  act(number, spares_.restoring(number, pending, std::move(missing), spare_wanted(number)));
}

void coordinator_state::hand_on(uint64_t number, const gpu_sim::DeviceMetadata& from, device_id to,
                                const proto::SpareRequest::Range& range, uint64_t done) {
  constexpr uint64_t piece_bytes_max = 1u << 20; // a large message would hold up all others on its way
  auto copied = [this, number](const caf::error& problem) {
    if (spares_.has(number))
      act(number, spares_.copied(number, problem, spare_wanted(number)));
  };
  auto giver = devices.find(id_of(from)), taker = devices.find(to);
  if (giver == nullptr || taker == nullptr)
    return copied(make_error(errc::device_lost, fmt::format("device 0x{:x} died while its inputs were copied",
                                                            giver == nullptr ? id_of(from) : to)));
  auto bytes = std::min(piece_bytes_max, range.bytes() - done);
  gpu_sim::MemcpyRequest out, in;
  out.mutable_devicetohost()->mutable_srcmemaddr()->set_value(range.address() + done);
  out.mutable_devicetohost()->set_numbytes(bytes);
  in.mutable_hosttodevice()->mutable_dstmemaddr()->set_value(range.address() + done - from.minmemaddr().value()
                                                             + taker->metadata.minmemaddr().value());
  auto taken = [=, this](const gpu_sim::MemcpyResponse& y, const byte_block&) {
    if (!y.error().empty() || done + bytes == range.bytes())
      return copied(error_in(y));
    hand_on(number, from, to, range, done + bytes);
  };
  self
    ->request(caf::actor_cast<device_actor>(giver->handle.device), options.request_limit, std::move(out), byte_block{})
    .then(
      [=, this, to_handle = caf::actor_cast<device_actor>(taker->handle.device)](const gpu_sim::MemcpyResponse& y,
                                                                                 const byte_block& block) {
        if (!y.error().empty())
          return copied(error_in(y));
        self->request(to_handle, options.request_limit, in, block).then(taken, copied);
      },
      copied);
}

void coordinator_state::outputs_written(const proto::OutputsWritten& x) {
  for (auto& range : x.ranges())
    copies.overwritten(device_id{range.device_id()}, range.address(), range.bytes());
}

} // namespace ringmaster
