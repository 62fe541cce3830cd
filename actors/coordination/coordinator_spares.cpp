// The COORDINATOR's part in the policy `replace`: which device stands in for a lost one, and what the host can give it.
#include "actors/coordination/coordinator.hpp"

#include "actors/calls/request_limit.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/request_of.hpp"

#include <algorithm>
#include <caf/send.hpp>
#include <fmt/format.h>

namespace ringmaster {

namespace {

uint64_t memory_bytes(const gpu_sim::DeviceMetadata& x) {
  return x.maxmemaddr().value() - x.minmemaddr().value();
}

} // namespace

caf::result<proto::SpareResponse, device_handle> coordinator_state::spare(const proto::SpareRequest& x) {
  auto promise = self->make_response_promise<proto::SpareResponse, device_handle>();
  auto number = ++waits_;
  searches_.emplace(number, spare_search{x, promise, {}, {}, {}, true, false, 0});
  self->delayed_send(self, request_limit(x.timeout_ns()), atom::expire_v, number);
  find_spare(number);
  return promise;
}

void coordinator_state::serve_searches() {
  std::vector<uint64_t> waiting;
  for (auto& [number, search] : searches_)
    if (search.copies_pending == 0)
      waiting.push_back(number);
  for (auto number : waiting)
    find_spare(number);
}

void coordinator_state::search_expired(uint64_t number) {
  auto i = searches_.find(number);
  if (i == searches_.end())
    return;
  i->second.expired = true;
  if (i->second.copies_pending == 0)
    find_spare(number);
}

uint64_t coordinator_state::free_device(const spare_search& search) const {
  auto i = std::find_if(devices.begin(), devices.end(), [&](auto& entry) {
    return entry.second.communicators.empty() && search.tried.count(entry.first) == 0
           && memory_bytes(entry.second.metadata) >= memory_bytes(search.request.lost());
  });
  return i == devices.end() ? 0 : i->first;
}

void coordinator_state::end_search(uint64_t number, const std::string& error) {
  auto search = std::move(searches_.at(number));
  searches_.erase(number);
  if (!error.empty()) {
    search.answer.Clear();
    search.answer.set_error(error);
    search.handle = {};
  }
  search.promise.deliver(std::move(search.answer), std::move(search.handle));
}

void coordinator_state::find_spare(uint64_t number) {
  auto& search = searches_.at(number);
  auto& x = search.request;
  if (communicators.count(x.comm_id()) == 0)
    return end_search(number, fmt::format("communicator {} has ended", x.comm_id()));
  auto id = free_device(search);
  if (id != 0)
    return restore(number, id);
  if (!search.expired)
    return; // one may join, or leave a communicator
  if (auto last = devices.find(search.last_resort); last != devices.end() && last->second.communicators.empty()) {
    last->second.communicators.insert(x.comm_id());
    return hand_over(number, last->first, search.last_problem);
  }
  auto free = std::count_if(devices.begin(), devices.end(), [](auto& y) { return y.second.communicators.empty(); });
  auto limit_s = std::chrono::duration<double>{request_limit(x.timeout_ns())}.count();
  end_search(number, fmt::format("no spare with {} bytes of memory was free within {:.1f} s; of the cluster's {} devices "
                                 "{} are in no communicator",
                                 memory_bytes(x.lost()), limit_s, devices.size(), free));
}

void coordinator_state::restore(uint64_t number, uint64_t id) {
  auto& search = searches_.at(number);
  auto& x = search.request;
  auto& device = devices.at(id);
  device_id lost{x.lost().deviceid().value()};
  device.communicators.insert(x.comm_id());
  search.tried.insert(id);
  search.answer.Clear();
  search.answer.set_success(true);
  *search.answer.mutable_device() = device.metadata;
  search.handle = device.handle;
  search.restorable = true;
  search.copies_pending = 1; // for this function itself
  auto moved = device.metadata.minmemaddr().value() - x.lost().minmemaddr().value();
  for (auto& input : x.inputs()) {
    auto pieces = copies.find(lost, input.address(), input.bytes());
    if (!pieces) {
      search.answer.set_inputs_error(render(pieces.error()));
      search.restorable = false;
      break;
    }
    for (auto& piece : *pieces) {
      gpu_sim::MemcpyRequest copy;
      copy.mutable_hosttodevice()->mutable_dstmemaddr()->set_value(piece.address + moved);
      auto block = piece.block.part(piece.offset, piece.bytes);
      copies.remember(device_id{id}, piece.address + moved, block);
      ++search.copies_pending;
      self->request(caf::actor_cast<device_actor>(device.handle.device), options.request_limit, std::move(copy),
                    std::move(block))
        .then([this, number, id](const gpu_sim::MemcpyResponse& y, const byte_block&) { restored(number, id, y.error()); },
              [this, number, id](const caf::error& problem) {
                if (problem == caf::sec::request_timeout)
                  fence(id, "it did not take a copy from the host in time", "coordinator", now_ns());
                restored(number, id, render(problem));
              });
    }
  }
  restored(number, id, {});
}

void coordinator_state::restored(uint64_t number, uint64_t id, const std::string& problem) {
  auto& search = searches_.at(number);
  if (search.answer.inputs_error().empty())
    search.answer.set_inputs_error(problem);
  if (--search.copies_pending > 0)
    return;
  auto why = search.answer.inputs_error();
  if (bool alive = devices.count(id) != 0; alive && (why.empty() || !search.restorable))
    return hand_over(number, id, why);
  // It has died, or could not take its inputs, and may be dying: its streams' refusals come before word of its death.
  // Another one may, also one that is not free yet.
  copies.forget(device_id{id});
  if (auto i = devices.find(id); i != devices.end()) {
    i->second.communicators.erase(search.request.comm_id());
    search.last_resort = id;
    search.last_problem = why;
  }
  find_spare(number);
}

void coordinator_state::hand_over(uint64_t number, uint64_t id, const std::string& inputs_error) {
  auto& search = searches_.at(number);
  search.answer.Clear();
  search.answer.set_success(true);
  *search.answer.mutable_device() = devices.at(id).metadata;
  search.answer.set_inputs_restored(inputs_error.empty());
  search.answer.set_inputs_error(inputs_error);
  search.handle = devices.at(id).handle;
  forget_lost(search.request.lost().deviceid().value(), search.request.comm_id());
  end_search(number, {});
}

void coordinator_state::forget_lost(uint64_t device, uint64_t communicator) {
  if (auto group = communicators.find(communicator); group != communicators.end())
    std::erase(group->second.lost, device);
  bool wanted = std::any_of(communicators.begin(), communicators.end(), [=](auto& entry) {
    return std::count(entry.second.lost.begin(), entry.second.lost.end(), device) != 0;
  });
  if (!wanted)
    copies.forget(device_id{device});
}

bool within(const gpu_sim::DeviceMetadata& device, uint64_t address, uint64_t bytes) {
  auto min = device.minmemaddr().value();
  auto max = device.maxmemaddr().value();
  return address >= min && address <= max && bytes <= max - address;
}

void coordinator_state::will_change(uint64_t id, uint64_t address, uint64_t bytes) {
  auto i = devices.find(id);
  if (i != devices.end() && within(i->second.metadata, address, bytes))
    copies.will_change(device_id{id}, address, bytes);
}

void coordinator_state::outputs_written(const proto::OutputsWritten& x) {
  for (auto& range : x.ranges())
    copies.overwritten(device_id{range.device_id()}, range.address(), range.bytes());
}

void coordinator_state::note_checkpoints(const proto::CollectiveRequest& x, uint64_t sequence) {
  auto& what = x.collective();
  auto world = request_of(what, static_cast<uint32_t>(std::max(x.inputs_size(), x.outputs_size())), 0);
  for (uint32_t rank = 0; rank < world.world_size; ++rank) {
    auto given = static_cast<int>(rank) < x.inputs_size() ? x.inputs(static_cast<int>(rank)) : 0;
    auto bytes = input_count(what.kind(), world, rank) * size_of(what.datatype());
    if (given == 0 || bytes == 0)
      continue;
    auto address = given;
    if (x.outputs().empty())
      address += in_place(what.kind(), world, rank).input * size_of(what.datatype());
    for (auto& [id, device] : devices) {
      bool here = device.metadata.minmemaddr().value() <= address && address < device.metadata.maxmemaddr().value();
      if (!here || !copies.find(device_id{id}, address, bytes))
        continue;
      proto::Record record;
      auto& checkpoint = *record.mutable_input_checkpoint();
      checkpoint.set_comm_id(x.comm_id());
      checkpoint.set_sequence(sequence);
      checkpoint.set_device_id(id);
      checkpoint.set_address(address);
      checkpoint.set_bytes(bytes);
      journal(std::move(record));
    }
  }
}

} // namespace ringmaster
