#include "actors/training/rank_memory.hpp"

#include "actors/calls/answers.hpp"
#include "messages/received_handles.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <utility>

namespace ringmaster::training {

void rank_memory::allocate(answer then) {
  ensure(!ready_, "memory is allocated once");
  ready_ = std::move(then);
  gpu_sim::DeviceId id;
  id.set_value(device_.value);
  self_->request(coordinator_, limit_, id)
    .then([this](const device_handle& x) { found(received(self_->system(), x)); },
          [this](const caf::error& problem) { ready_(problem); });
}

void rank_memory::found(const device_handle& x) {
  monitored_ = x.device->address();
  self_->monitor(monitored_); // no link: the device outlives the rank
  if (!x.memory)
    return ready_(make_error(errc::unreachable, fmt::format("the memory of {} is not accessible", text_of(device_))));
  auto memory = mapped_memory::reach(*x.memory, mapped_memory::access::write);
  if (!memory)
    return not_reached(memory.error());
  memory_ = std::move(*memory);
  request(x.memory->bytes);
}

void rank_memory::not_reached(const caf::error& why) {
  gpu_sim::DeviceId id;
  id.set_value(device_.value);
  self_->request(coordinator_, limit_, id, gpu_sim::GetDeviceMetadataRequest{})
    .then([this, why](const gpu_sim::GetDeviceMetadataResponse&) { ready_(why); },
          [this](const caf::error& problem) {
            ready_(make_error(errc::device_lost, fmt::format("{} is lost: {}", text_of(device_), render(problem))));
          });
}

void rank_memory::request(uint64_t all) {
  gpu_sim::DeviceId id;
  id.set_value(device_.value);
  proto::AllocateRequest request;
  const auto bytes = wanted_ != 0 ? wanted_ : all;
  request.set_bytes(bytes);
  request.set_outlives_client(false);
  self_->request(coordinator_, limit_, id, request)
    .then(
      [this, bytes](const proto::AllocateResponse& y) {
        if (auto problem = error_in(y))
          ready_(problem);
        else
          allocated(y.address(), bytes);
      },
      [this](const caf::error& problem) { ready_(problem); });
}

void rank_memory::allocated(const gpu_sim::MemAddr& at, uint64_t bytes) {
  auto range = memory_->at(at.value(), bytes);
  if (!range)
    return ready_(range.error());
  ensure(bytes_.empty(), "memory is allocated once");
  ensure(range->size() == bytes, "the mapped range is what was allocated");
  bytes_ = *range;
  address_ = at.value();
  ready_(caf::none);
}

void rank_memory::free(std::function<void()> done) {
  done_ = std::move(done);
  if (bytes_.empty() || coordinator_gone_) // there is nothing to free, or no coordinator to ask
    return freed();
  gpu_sim::DeviceId id;
  id.set_value(device_.value);
  proto::FreeRequest request;
  request.mutable_address()->set_value(address_);
  self_->request(coordinator_, limit_, id, request)
    .then([this](const proto::FreeResponse&) { freed(); }, [this](const caf::error&) { freed(); });
}

void rank_memory::coordinator_lost() {
  coordinator_gone_ = true;
  freed();
}

void rank_memory::freed() {
  if (auto done = std::exchange(done_, nullptr))
    done();
}

void rank_memory::stop_monitoring() {
  if (monitored_)
    self_->demonitor(monitored_);
}

} // namespace ringmaster::training
