#include "runtime/coordination/id_ledger.hpp"

#include <algorithm>

namespace ringmaster {

void id_ledger::start_above(const proto::JournalState& known) {
  given_.node = std::max(given_.node, known.node_id());
  given_.device = std::max(given_.device, known.device_id());
  given_.communicator = std::max(given_.communicator, known.comm_id());
  floor_ = std::max(floor_, known.device_id());
}

device_id id_ledger::new_device(device_id wanted) {
  auto id = wanted.value > floor_ && devices_.count(wanted) == 0 ? wanted : device_id{given_.device + 1};
  taken(id);
  return id;
}

void id_ledger::taken(device_id id) {
  devices_.insert(id);
  given_.device = std::max(given_.device, id.value);
}

std::optional<proto::Record> id_ledger::mark() {
  bool ahead = true;
  auto move = [&](uint64_t given, uint64_t& marked) {
    if (given + reserve / 2 <= marked)
      return;
    marked = given + reserve;
    ahead = false;
  };
  move(given_.node, marked_.node);
  move(given_.device, marked_.device);
  move(given_.communicator, marked_.communicator);
  if (ahead)
    return std::nullopt;
  return record_of(marked_);
}

proto::Record id_ledger::record_of(const highest& x) {
  proto::Record result;
  auto& ids = *result.mutable_ids_reserved();
  ids.set_node_id(x.node);
  ids.set_device_id(x.device);
  ids.set_comm_id(x.communicator);
  return result;
}

} // namespace ringmaster
