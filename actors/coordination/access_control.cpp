#include "actors/coordination/access_control.hpp"

#include "actors/coordination/coordinator.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace ringmaster {

namespace {

/// Null: the message is another one.
template <class T>
const T* only(const caf::type_erased_tuple& call) {
  return call.match_elements<T>() ? &call.get_as<T>(0) : nullptr;
}

/// A call to a device: null if it is another one.
template <class T>
const T* to_device(const caf::type_erased_tuple& call) {
  return call.match_elements<gpu_sim::DeviceId, T>() ? &call.get_as<T>(1) : nullptr;
}

caf::error denied(std::string text) {
  return make_error(errc::permission_denied, std::move(text));
}

template <class T>
uint64_t communicator_in(const T& x) {
  if constexpr (requires { x.comm_id(); })
    return x.comm_id();
  else
    return x.commid();
}

template <class... Ts>
std::optional<uint64_t> communicator_of_one(const caf::type_erased_tuple& call) {
  std::optional<uint64_t> result;
  const auto look = [&](const auto* x) {
    if (x != nullptr)
      result = communicator_in(*x);
    return x != nullptr;
  };
  (void)(look(only<Ts>(call)) || ...);
  return result;
}

/// The communicator that a call names; none: it names none.
std::optional<uint64_t> communicator_named_by(const caf::type_erased_tuple& call) {
  return communicator_of_one<gpu_sim::GetCommStatusRequest, gpu_sim::GroupStartRequest, gpu_sim::GroupEndRequest,
                             gpu_sim::AllReduceRingRequest, proto::CollectiveRequest, proto::RankCall,
                             proto::CommDeriveRequest, proto::CommWaitRequest, proto::CommAbortRequest,
                             proto::CommDestroyRequest, proto::MeetingRequest, proto::MetReport>(call);
}

/// What a call changes, for the journal; none: it changes nothing, or is recorded when it is done.
std::optional<proto::Audit> change_of(const caf::type_erased_tuple& call) {
  proto::Audit result;
  if (const auto* x = only<proto::CommDestroyRequest>(call)) {
    result.set_comm_id(x->comm_id());
    result.set_action(fmt::format("destroys communicator {}", x->comm_id()));
  } else if (const auto* y = only<proto::CommAbortRequest>(call)) {
    result.set_comm_id(y->comm_id());
    result.set_action(fmt::format("aborts communicator {}", y->comm_id()));
  } else if (const auto* fault = to_device<proto::FaultRequest>(call)) {
    const auto device = call.get_as<gpu_sim::DeviceId>(0).value();
    const auto delay = duration_text(fault->delay_ns());
    result.set_device_id(device);
    result.set_action(fault->kind() == proto::FaultRequest::KILL ? fmt::format("kills device {:#x}", device)
                      : fault->kind() == proto::FaultRequest::HANG
                        ? fmt::format("hangs device {:#x}{}", device, fault->delay_ns() == 0 ? "" : " for " + delay)
                      : fault->delay_ns() == 0 ? fmt::format("ends the slowness of device {:#x}", device)
                                               : fmt::format("slows device {:#x} by {}", device, delay));
  } else if (const auto* drain = only<proto::DrainRequest>(call)) {
    result.set_action(fmt::format("drains node {}", drain->node()));
  } else if (const auto* absent = only<proto::RankAbsentRequest>(call)) {
    result.set_action(fmt::format("reports rank {} of group {} as absent: {}", absent->rank(), absent->group(),
                                  absent->cause()));
  } else if (const auto* rank = only<proto::RendezvousRequest>(call)) {
    result.set_device_id(rank->device_id());
    result.set_action(fmt::format("comes as rank {} of group {}", rank->rank(), rank->group()));
  } else if (call.size() > 1 && call.match_element<proto::NodeJoinRequest>(0)) {
    const auto& node = call.get_as<proto::NodeJoinRequest>(0);
    result.set_node_id(node.node_id());
    result.set_action(fmt::format("{} as node {} with {}", node.has_cluster() ? "comes back" : "joins", node.name(),
                                  counted(node.devices(), "device")));
  } else {
    return std::nullopt;
  }
  return result;
}

} // namespace

calling_process access_control::process_of(const caf::strong_actor_ptr& sender) const {
  auto& identify = coordinator_.options.identify;
  if (!identify || !sender || sender->node() == coordinator_.self->node())
    return {};
  if (auto known = identify(sender->node()))
    return {std::move(known->who), std::move(known->address), std::move(known->process)};
  return {{role::client}, {}, to_string(sender->node())}; // it has left: the least that its call was admitted for
}

caf::error access_control::admit(const caf::mailbox_element& x) {
  if (x.mid.is_response())
    return caf::none;
  caller_ = process_of(x.sender);
  if (caller_.process.empty())
    return caf::none;
  const auto& call = x.content();
  if (auto problem = check(call)) {
    refused(caller_, render(problem));
    return problem;
  }
  if (auto change = change_of(call))
    record(std::move(*change), caller_);
  return caf::none;
}

bool access_control::may_use(const calling_process& x, communicator_id what) const {
  const auto is_own = [&](device_id id) {
    const auto* device = coordinator_.devices.find(id);
    return device != nullptr && to_string(device->handle.device->node()) == x.process;
  };
  return !x.is_confined()
         || rules_.may_use(
           x, what, x.who.as == role::rank && std::ranges::any_of(coordinator_.devices.members_of(what), is_own));
}

caf::error access_control::check_communicator(uint64_t id) const {
  if (may_use(caller_, communicator_id{id}))
    return caf::none;
  return denied(fmt::format("communicator {} is not one of {}: a {} may use those that it has made only, and the role "
                            "operator all",
                            id, text_of(caller_.who), name_of(caller_.who.as)));
}

caf::error access_control::check_device(device_id id) const {
  const auto* device = coordinator_.devices.find(id);
  if (device == nullptr // whose own error is more precise
      || rules_.may_use(caller_, {device->communicators, to_string(device->handle.device->node())}))
    return caf::none;
  return denied(fmt::format("{} is in a communicator of another client: a {} may use devices in its own ones, and free "
                            "ones",
                            coordinator_.devices.text_of(id), name_of(caller_.who.as)));
}

caf::error access_control::check_memory(device_id id, uint64_t address, uint64_t bytes) const {
  RETURN_ERROR(check_device(id));
  if (rules_.may_use(caller_, owned_range{id, address}, bytes))
    return caf::none;
  return denied(fmt::format("another client has allocated memory at {:#x} of {}", address,
                            coordinator_.devices.text_of(id)));
}

caf::error access_control::check(const caf::type_erased_tuple& call) const {
  if (caller_.is_confined())
    RETURN_ERROR(check_confined(call));
  if (caller_.who.as == role::node || caller_.who.as == role::rank)
    return check_of_node(call);
  return caf::none;
}

caf::error access_control::check_confined(const caf::type_erased_tuple& call) const {
  if (const auto id = communicator_named_by(call))
    return check_communicator(*id);
  if (const auto* calls = only<proto::CollectiveRequests>(call)) {
    for (auto& each : calls->calls())
      RETURN_ERROR(check_communicator(each.comm_id()));
    return caf::none;
  }
  if (const auto* made = only<gpu_sim::CommInitRequest>(call)) {
    for (auto id : made->deviceids())
      RETURN_ERROR(check_device(device_id{id}));
    return caf::none;
  }
  if (const auto* copy = call.size() > 0 && call.match_element<gpu_sim::MemcpyRequest>(0)
                           ? &call.get_as<gpu_sim::MemcpyRequest>(0)
                           : nullptr) {
    if (copy->has_devicetohost())
      return check_memory(device_id{copy->devicetohost().srcdeviceid().value()},
                          copy->devicetohost().srcmemaddr().value(), copy->devicetohost().numbytes());
    const auto beside = call.size() > 1 ? call.get_as<byte_block>(1).size() : 0;
    return check_memory(device_id{copy->hosttodevice().dstdeviceid().value()},
                        copy->hosttodevice().dstmemaddr().value(),
                        std::max<uint64_t>(beside, copy->hosttodevice().hostsrcdata().size()));
  }
  if (const auto* journal = only<proto::JournalTailRequest>(call)) {
    if (journal->comm_id() == 0)
      return denied(fmt::format("a {} may read the journal of its communicators: name one", name_of(caller_.who.as)));
    return check_communicator(journal->comm_id());
  }
  if (const auto* step = only<proto::TrainingStep>(call)) {
    for (auto id : step->device_ids())
      RETURN_ERROR(check_device(device_id{id}));
    return caf::none;
  }
  if (const auto* back = only<proto::ClientReturn>(call)) {
    for (auto& each : back->calls())
      RETURN_ERROR(check_communicator(each.comm_id()));
    const auto& client = coordinator_.self->current_sender();
    return client && back->owner() == caf::to_string(client->address())
             ? caf::none
             : denied("a client may come back in its own name only");
  }
  if (call.match_elements<std::string, caf::strong_actor_ptr>()) {
    const auto holder = coordinator_.clients.find(call.get_as<std::string>(0));
    return holder == nullptr || to_string(holder->node()) == caller_.process
             ? caf::none
             : denied(fmt::format("another process has published an actor by the name {}",
                                  call.get_as<std::string>(0)));
  }
  if (call.size() == 0 || !call.match_element<gpu_sim::DeviceId>(0))
    return caf::none;
  const device_id device{call.get_as<gpu_sim::DeviceId>(0).value()};
  if (const auto* sent = to_device<gpu_sim::BeginSendRequest>(call))
    return check_memory(device, sent->sendbuffaddr().value(), sent->numbytes());
  if (const auto* received = to_device<gpu_sim::BeginReceiveRequest>(call))
    return check_memory(device, received->recvbuffaddr().value(), received->numbytes());
  if (const auto* freed = to_device<proto::FreeRequest>(call))
    return check_memory(device, freed->address().value(), 1);
  if (const auto* copied = to_device<proto::CopyRequest>(call)) {
    RETURN_ERROR(check_memory(device, copied->source().value(), copied->bytes()));
    return check_memory(device, copied->destination().value(), copied->bytes());
  }
  return to_device<gpu_sim::GetDeviceMetadataRequest>(call) != nullptr ? caf::none : check_device(device);
}

caf::error access_control::check_own_node(uint64_t id) const {
  const auto& nodes = coordinator_.devices.nodes();
  const auto known = nodes.find(node_id{id});
  return known == nodes.end() || to_string(known->second.handle->node()) == caller_.process
           ? caf::none
           : denied(fmt::format("node {} is of another process", known->second.about.name()));
}

caf::error access_control::check_of_node(const caf::type_erased_tuple& call) const {
  if (const auto* apart = only<proto::NodeApart>(call))
    return check_own_node(apart->node_id());
  if (call.match_elements<proto::DeviceReady, device_handle>())
    return check_own_node(call.get_as<proto::DeviceReady>(0).node_id());
  if (call.size() > 1 && call.match_element<proto::NodeJoinRequest>(0)) {
    const auto& handle = call.get_as<caf::strong_actor_ptr>(1);
    return !handle || to_string(handle->node()) == caller_.process ? caf::none : denied("a node joins for itself only");
  }
  const auto* rank = only<proto::RendezvousRequest>(call);
  const auto* end = only<proto::FinalizeRequest>(call);
  if (rank == nullptr && end == nullptr)
    return caf::none;
  if (rank != nullptr)
    if (const auto* device = coordinator_.devices.find(device_id{rank->device_id()});
        device != nullptr && to_string(device->handle.device->node()) != caller_.process)
      return denied(fmt::format("{} is of another process",
                                coordinator_.devices.text_of(device_id{rank->device_id()})));
  const auto& name = caller_.who.name; // the number of the one rank that it may be, or none
  uint32_t number = 0;
  const auto is_number = std::from_chars(name.data(), name.data() + name.size(), number);
  const auto asked = rank != nullptr ? rank->rank() : end->rank();
  if (name.empty() || (is_number.ec == std::errc{} && is_number.ptr == name.data() + name.size() && number == asked))
    return caf::none;
  return denied(fmt::format("{} may not be rank {}", text_of(caller_.who), asked));
}

// -- the journal -------------------------------------------------------------------

void access_control::record(proto::Audit x, const calling_process& who) {
  x.set_role(std::string{name_of(who.who.as)});
  x.set_name(who.who.name);
  x.set_address(who.address);
  proto::Record record;
  *record.mutable_audit() = std::move(x);
  coordinator_.journal(std::move(record));
}

void access_control::refused(const calling_process& who, const std::string& why, uint64_t others) {
  const auto times = refusals_.happened(coordinator_.self->clock().now());
  if (times == 0)
    return;
  proto::Audit x;
  x.set_action("was refused");
  x.set_refused(why);
  x.set_unrecorded(times - 1 + others);
  record(std::move(x), who);
}

void access_control::made(communicator_id what, const calling_process& who, size_t devices) {
  if (who.process.empty())
    return;
  proto::Audit x;
  x.set_comm_id(what.value);
  x.set_action(fmt::format("makes communicator {} of {}", what, counted(devices, "device")));
  record(std::move(x), who);
}

void access_control::left(node_id node, bool in_good_order) {
  const auto known = node_callers_.extract(node);
  if (!known || known.mapped().process.empty() || !in_good_order)
    return;
  proto::Audit x;
  x.set_node_id(node.value);
  x.set_action(fmt::format("leaves with node {}", node));
  record(std::move(x), known.mapped());
}

} // namespace ringmaster
