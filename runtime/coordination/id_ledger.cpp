#include "runtime/coordination/id_ledger.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <utility>

namespace ringmaster {

void id_ledger::start_above(uint64_t node, uint64_t device, uint64_t communicator) {
  given_.node = std::max(given_.node, node_id{node});
  given_.device = std::max(given_.device, device_id{device});
  given_.communicator = std::max(given_.communicator, communicator_id{communicator});
  floor_ = std::max(floor_, device_id{device});
  ensure(floor_ <= given_.device, "devices of earlier runs have given ids");
}

node_id id_ledger::new_node() {
  const auto last = std::exchange(given_.node, given_.node.next());
  ensure(last < given_.node, "no node's number is given twice");
  return given_.node;
}

communicator_id id_ledger::new_communicator() {
  const auto last = std::exchange(given_.communicator, given_.communicator.next());
  ensure(last < given_.communicator, "no communicator's number is given twice");
  return given_.communicator;
}

device_id id_ledger::new_device(device_id wanted) {
  auto id = wanted > floor_ && devices_.count(wanted) == 0 ? wanted : given_.device.next();
  ensure(id != device_id{} && devices_.count(id) == 0, "no device's number is given twice");
  taken(id);
  return id;
}

void id_ledger::taken(device_id id) {
  devices_.insert(id);
  given_.device = std::max(given_.device, id);
  ensure(!devices_.empty() && *devices_.rbegin() <= given_.device, "no device's number is above the highest");
}

std::optional<proto::Record> id_ledger::mark() {
  bool ahead = true;
  auto move = [&](auto given, auto& marked) {
    if (given.value + reserve / 2 <= marked.value)
      return;
    ensure(marked.value <= given.value + reserve, "marks rise");
    marked.value = given.value + reserve;
    ahead = false;
  };
  move(given_.node, marked_.node);
  move(given_.device, marked_.device);
  move(given_.communicator, marked_.communicator);
  ensure(marked_.node >= given_.node && marked_.device >= given_.device && marked_.communicator >= given_.communicator,
         "a mark is ahead of what was given");
  if (ahead)
    return std::nullopt;
  return record_of(marked_);
}

proto::Record id_ledger::record_of(const highest& x) {
  proto::Record result;
  auto& ids = *result.mutable_ids_reserved();
  ids.set_node_id(x.node.value);
  ids.set_device_id(x.device.value);
  ids.set_comm_id(x.communicator.value);
  return result;
}

} // namespace ringmaster
