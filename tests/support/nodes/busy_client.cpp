#include "tests/support/nodes/busy_client.hpp"

#include "actors/calls/answers.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <utility>

namespace ringmaster::test {

namespace {

constexpr uint64_t cell = 256;

gpu_sim::DeviceId wire_id(uint64_t device) {
  gpu_sim::DeviceId result;
  result.set_value(device);
  return result;
}

} // namespace

busy_client::busy_client(simulated_nodes& cluster, const gpu_sim::CommInitResponse& comm, uint64_t used,
                         client_history& history)
  : cluster_(cluster), comm_(comm.commid()), history_(history), random_(cluster.seed) {
  for (auto& device : comm.devices()) {
    devices_.push_back(device.deviceid().value());
    proto::AllocateRequest all;
    all.set_bytes(used + cell);
    const auto answer = cluster.ask_coordinator<proto::AllocateResponse>(wire_id(devices_.back()), all);
    REQUIRE(answer.error() == "");
    REQUIRE(answer.address().value() == device.minmemaddr().value());
  }
  actor_ = cluster.client_system().spawn([this](caf::event_based_actor* self) -> caf::behavior {
    self_ = self;
    next_round();
    return {[this](atom::flush) { start_round(); }};
  });
}

void busy_client::finish(caf::timespan limit) {
  ends_ = true;
  const auto until = cluster_.now() + limit;
  cluster_.later(limit, [] {});
  cluster_.run_until([&] { return is_idle_ || cluster_.now() >= until; });
  if (!is_idle_)
    note("a call of the busy client is not answered");
}

void busy_client::stop() {
  caf::anon_send_exit(std::exchange(actor_, {}), caf::exit_reason::kill);
}

void busy_client::note(std::string problem) {
  if (problem_.empty())
    problem_ = std::move(problem);
}

template <class Response, class Then, class... Xs>
void busy_client::ask(Then then, Xs&&... xs) {
  ++calls_;
  self_->request(cluster_.host, caf::infinite, std::forward<Xs>(xs)...)
    .then([then](Response& x) { then(x); },
          [this](const caf::error& problem) {
            if (render(problem).empty())
              note("a call of the busy client failed without a reason");
            next_round();
          });
}

template <class Response>
bool busy_client::is_well(const Response& x) {
  const auto problem = error_in(x);
  if (!problem)
    return true;
  if (render(problem).empty())
    note("a call of the busy client failed without a reason");
  next_round();
  return false;
}

/// First one after the other, then now and then.
void busy_client::next_round() {
  const caf::timespan pause = ++rounds_ < 20 ? caf::timespan{0} : std::chrono::milliseconds{20 + random_() % 500};
  self_->delayed_send(self_, pause, atom::flush_v);
}

void busy_client::start_round() {
  if (ends_) {
    is_idle_ = true;
    return;
  }
  device_ = devices_[random_() % devices_.size()];
  switch (random_() % 3) {
    case 0: return ask_status();
    case 1: return make();
    default: return allocate(true);
  }
}

// -- communicators ---------------------------------------------------------------------

void busy_client::ask_status() {
  gpu_sim::GetCommStatusRequest request;
  request.set_commid(comm_);
  request.set_readonly(true);
  const auto number = history_.begin({.what = client_call::kind::status, .communicator = comm_}, cluster_.now_ns());
  ask<gpu_sim::GetCommStatusResponse>(
    [this, number](const gpu_sim::GetCommStatusResponse& x) {
      // FAILED with a reason is the answer about an operation, and is an answer about the communicator as well.
      const auto code = x.error().empty() ? caf::error{} : error_in(x);
      auto& call = history_.end(number, cluster_.now_ns());
      call.reason = x.error();
      call.answer = code_of(code) == errc::unknown_communicator ? client_call::outcome::gone
                    : x.devices().empty()                       ? client_call::outcome::failed
                                                                : client_call::outcome::done;
      call.epoch = x.epoch();
      for (auto& device : x.devices())
        call.members.push_back(device.deviceid().value());
      std::ranges::sort(call.members);
      next_round();
    },
    std::move(request));
}

void busy_client::make() {
  gpu_sim::CommInitRequest request;
  request.set_defaultpolicy(true);
  request.add_deviceids(device_);
  if (const auto other = devices_[random_() % devices_.size()]; other != device_)
    request.add_deviceids(other);
  const auto number = history_.begin({.what = client_call::kind::make}, cluster_.now_ns());
  ask<gpu_sim::CommInitResponse>(
    [this, number](const gpu_sim::CommInitResponse& x) {
      auto& call = history_.end(number, cluster_.now_ns());
      call.answer = x.success() ? client_call::outcome::done : client_call::outcome::refused;
      call.reason = x.error();
      call.communicator = x.commid();
      call.may_end = true; // devices may die
      for (auto& device : x.devices())
        call.members.push_back(device.deviceid().value());
      std::ranges::sort(call.members);
      if (is_well(x))
        destroy(x.commid());
    },
    std::move(request));
}

void busy_client::destroy(uint64_t communicator) {
  proto::CommDestroyRequest request;
  request.set_comm_id(communicator);
  const auto number = history_.begin({.what = client_call::kind::destroy, .communicator = communicator},
                                     cluster_.now_ns());
  ask<proto::CommDestroyResponse>(
    [this, number](const proto::CommDestroyResponse& x) {
      const auto problem = error_in(x);
      auto& call = history_.end(number, cluster_.now_ns());
      call.reason = x.error();
      call.answer = !problem                                         ? client_call::outcome::done
                    : code_of(problem) == errc::unknown_communicator ? client_call::outcome::gone
                                                                     : client_call::outcome::failed;
      next_round();
    },
    std::move(request));
}

// -- memory: write, copy, write again, read the copy --------------------------------------

void busy_client::allocate(bool first) {
  proto::AllocateRequest request;
  request.set_bytes(cell);
  ask<proto::AllocateResponse>(
    [this, first](const proto::AllocateResponse& x) {
      if (!is_well(x))
        return;
      const auto address = x.address().value();
      if (!allocated_[device_].insert(address).second)
        note(fmt::format("the address 0x{:x} of device 0x{:x} was allocated twice", address, device_));
      (first ? from_ : to_) = address;
      first ? allocate(false) : write_first();
    },
    wire_id(device_), std::move(request));
}

void busy_client::write(uint64_t value, void (busy_client::*then)()) {
  gpu_sim::MemcpyRequest request;
  request.mutable_hosttodevice()->mutable_dstdeviceid()->set_value(device_);
  request.mutable_hosttodevice()->mutable_dstmemaddr()->set_value(from_);
  ++calls_;
  self_->request(cluster_.host, caf::infinite, std::move(request), byte_block::of(std::vector{value}))
    .then(
      [this, then](const gpu_sim::MemcpyResponse& x, const byte_block&) {
        if (is_well(x))
          (this->*then)();
      },
      [this](const caf::error&) { next_round(); });
}

void busy_client::copy() {
  proto::CopyRequest request;
  request.mutable_source()->set_value(from_);
  request.mutable_destination()->set_value(to_);
  request.set_bytes(sizeof values_);
  ask<proto::CopyResponse>(
    [this](const proto::CopyResponse& x) {
      if (is_well(x))
        write(values_ + 1'000'000, &busy_client::read);
    },
    wire_id(device_), std::move(request));
}

void busy_client::read() {
  gpu_sim::MemcpyRequest request;
  request.mutable_devicetohost()->mutable_srcdeviceid()->set_value(device_);
  request.mutable_devicetohost()->mutable_srcmemaddr()->set_value(to_);
  request.mutable_devicetohost()->set_numbytes(sizeof values_);
  ++calls_;
  self_->request(cluster_.host, caf::infinite, std::move(request), byte_block{})
    .then(
      [this](const gpu_sim::MemcpyResponse& x, const byte_block& block) {
        if (!is_well(x))
          return;
        const auto found = block.as<uint64_t>();
        if (found.size() != 1 || found.front() != values_)
          note(fmt::format("device 0x{:x} has {} where {} was copied to", device_, found.empty() ? 0 : found.front(),
                           values_));
        free(true);
      },
      [this](const caf::error&) { next_round(); });
}

void busy_client::free(bool first) {
  const auto address = first ? from_ : to_;
  proto::FreeRequest request;
  request.mutable_address()->set_value(address);
  ask<proto::FreeResponse>(
    [this, first, address](const proto::FreeResponse& x) {
      allocated_[device_].erase(address);
      if (code_of(error_in(x)) == errc::invalid_argument)
        note("memory that was allocated cannot be freed: " + x.error());
      if (is_well(x))
        first ? free(false) : next_round();
    },
    wire_id(device_), std::move(request));
}

} // namespace ringmaster::test
