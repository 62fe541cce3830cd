#include "runtime/coordination/spare_desk.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

namespace {

using kind = spare_desk::step::kind;

communicator_id communicator_of(const proto::SpareRequest& x) {
  return communicator_id{x.comm_id()};
}

} // namespace

void spare_desk::asked(number id, proto::SpareRequest request) {
  ensure(searches_.count(id) == 0, "a spare is searched for once");
  searches_[id].request = std::move(request);
}

const proto::SpareRequest& spare_desk::request(number id) const {
  ensure(has(id), "a request that is looked at is open");
  return searches_.at(id).request;
}

void spare_desk::answered(number id) {
  ensure(has(id), "a request for a spare is answered once");
  ensure(searches_.at(id).copies_pending == 0, "a request is answered when all copies have ended");
  searches_.erase(id);
}

std::vector<spare_desk::number> spare_desk::waiting() const {
  std::vector<number> result;
  for (auto& [id, x] : searches_)
    if (x.device.value == 0)
      result.push_back(id);
  return result;
}

device_id spare_desk::free_device(const search& x) const {
  for (auto& [id, device] : devices_.devices())
    if (devices_.is_free(device) && x.tried.count(id) == 0
        && memory_bytes(device.metadata) >= memory_bytes(x.request.lost()))
      return id;
  return {};
}

spare_desk::step spare_desk::next(number id, bool wanted) {
  ensure(searches_.count(id) != 0, "a search that goes on has been started");
  auto& x = searches_.at(id);
  ensure(x.device == device_id{}, "a search goes on without a device");
  if (!wanted)
    return {kind::refuse,
            {},
            make_error(errc::unknown_communicator, fmt::format("communicator {} has ended", x.request.comm_id()))};
  if (auto device = free_device(x); device.value != 0) {
    devices_.take(device, communicator_of(x.request));
    x.tried.insert(device);
    x.device = device;
    x.problem = {};
    x.restorable = true;
    return {kind::restore, device, {}};
  }
  return x.expired ? nobody(x) : step{}; // one may join, or leave a communicator
}

spare_desk::step spare_desk::nobody(search& x) const {
  if (x.second_best) // better than an empty place, if it is still free
    if (auto device = devices_.find(x.second_best->first); device != nullptr && devices_.is_free(*device)) {
      devices_.take(x.second_best->first, communicator_of(x.request));
      return {kind::hand_over, x.second_best->first, x.second_best->second};
    }
  auto limit_s = static_cast<double>(x.request.timeout_ns()) / 1e9;
  return {kind::refuse,
          {},
          make_error(errc::too_few_devices, fmt::format("no spare with {} bytes of memory was free within {:.1f} s; of "
                                                        "the cluster's {} devices {} are in no communicator",
                                                        memory_bytes(x.request.lost()), limit_s,
                                                        devices_.devices().size(), devices_.free_count()))};
}

spare_desk::step spare_desk::expired(number id, bool wanted) {
  auto i = searches_.find(id);
  if (i == searches_.end())
    return {};
  i->second.expired = true;
  return i->second.device.value == 0 ? next(id, wanted) : step{};
}

spare_desk::step spare_desk::restoring(number id, size_t copies, caf::error missing, bool wanted) {
  ensure(has(id), "a device is restored for an open request");
  auto& x = searches_.at(id);
  ensure(x.device != device_id{} && x.copies_pending == 0, "a device is restored once");
  x.copies_pending = copies;
  x.restorable = !missing;
  x.problem = std::move(missing);
  return copies == 0 ? restored(id, x, wanted) : step{};
}

spare_desk::step spare_desk::copied(number id, caf::error problem, bool wanted) {
  ensure(has(id), "a request is open while copies are under way");
  auto& x = searches_.at(id);
  ensure(x.copies_pending > 0, "a copy that ends was started");
  if (!x.problem)
    x.problem = std::move(problem);
  return --x.copies_pending == 0 ? restored(id, x, wanted) : step{};
}

spare_desk::step spare_desk::restored(number id, search& x, bool wanted) {
  ensure(x.copies_pending == 0 && x.device != device_id{}, "a device is judged when all copies to it have ended");
  bool alive = devices_.find(x.device) != nullptr;
  bool another_may = !alive || (x.problem && x.restorable);
  if (alive && !another_may)
    return {kind::hand_over, x.device, x.problem};
  // It has died, or is about to: a dying device refuses a copy before its death is noticed.
  auto device = std::exchange(x.device, device_id{});
  devices_.leave(device, communicator_of(x.request));
  if (alive)
    x.second_best = {device, x.problem};
  return next(id, wanted);
}

} // namespace ringmaster
