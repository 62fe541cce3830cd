#include "runtime/operations/operation.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/reduction/reducer.hpp"
#include "runtime/schedule/collective.hpp"
#include "runtime/schedule/request_of.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster {

namespace {

using addresses = google::protobuf::RepeatedField<uint64_t>; // by rank; 0: none

/// Whether [address, address + bytes) is within the device's memory.
caf::error check_range(const gpu_sim::DeviceMetadata& device, uint32_t rank, const char* what, uint64_t address,
                       uint64_t bytes) {
  auto min = device.minmemaddr().value();
  auto max = device.maxmemaddr().value();
  if (address >= min && address <= max && bytes <= max - address)
    return caf::none;
  return make_error(
    errc::out_of_range,
    fmt::format("rank {}: the {} of {} bytes at 0x{:x} is not within the memory of device 0x{:x}, [0x{:x}, 0x{:x})",
                rank, what, bytes, address, device.deviceid().value(), min, max));
}

/// An address for each rank that has elements there, and none for ranks that do not exist.
caf::error check_ranks(const addresses& given, const char* what, const std::vector<uint64_t>& bytes) {
  auto world_size = static_cast<int>(bytes.size());
  if (given.size() > world_size)
    return invalid(fmt::format("{} {} addresses for a communicator of {} ranks", given.size(), what, world_size));
  std::vector<int> missing;
  for (int rank = 0; rank < world_size; ++rank)
    if ((rank >= given.size() || given[rank] == 0) && bytes[static_cast<size_t>(rank)] != 0)
      missing.push_back(rank);
  if (!missing.empty())
    return invalid(fmt::format("no {} address for rank {}: the communicator has ranks 0 to {}", what,
                               fmt::join(missing, ", "), world_size - 1));
  return caf::none;
}

uint64_t address_of(const addresses& given, uint32_t rank, const gpu_sim::DeviceMetadata& device) {
  auto address = static_cast<int>(rank) < given.size() ? given[static_cast<int>(rank)] : 0;
  return address == 0 ? device.minmemaddr().value() : address; // of no elements: any address will do
}

caf::error check_types(const proto::Collective& what, size_t ranks) {
  if (size_of(what.datatype()) == 0 || !gpu_sim::ReduceOp_IsValid(what.op()))
    return invalid(fmt::format("datatype {} or reduction op {} is not one of this version's",
                               static_cast<int>(what.datatype()), static_cast<int>(what.op())));
  if (!reduces(what.kind()))
    return caf::none;
  if (auto known = reducer::of(what.datatype(), what.op(), what.user_op()); !known)
    return std::move(known.error());
  if (what.op() != gpu_sim::PREMUL_SUM)
    return caf::none;
  if (what.factors_size() != 1 && what.factors_size() != static_cast<int>(ranks))
    return invalid(fmt::format("premul_sum over {} ranks wants {} factors, or one for all, and there are {}", ranks,
                               ranks, what.factors_size()));
  for (auto factor : what.factors())
    RETURN_ERROR(check_factor(what.datatype(), factor));
  return caf::none;
}

/// In place, counts that differ by direction would make two blocks of different sizes change places.
caf::error check_swap(const proto::Collective& what, uint32_t ranks) {
  for (uint32_t a = 0; a < ranks; ++a)
    for (uint32_t b = a + 1; b < ranks; ++b) {
      auto there = what.counts(static_cast<int>(a * ranks + b));
      auto back = what.counts(static_cast<int>(b * ranks + a));
      if (there != back)
        return invalid(fmt::format("all_to_all in place: rank {} sends {} elements to rank {}, which sends {} back; in "
                                   "place both must be as many",
                                   a, there, b, back));
    }
  return caf::none;
}

template <class List>
void erase_at(List& list, int index) {
  list.erase(list.begin() + index);
}

} // namespace

std::vector<operation::slot>::iterator operation::slot_of(device_id device) {
  return std::find_if(slots.begin(), slots.end(), [=](auto& x) { return x.device == device; });
}

void operation::lay_out() {
  ensure(!moving, "addresses do not change while data moves");
  auto world = request_of(what(), static_cast<uint32_t>(slots.size()), 0);
  auto element = size_of(what().datatype());
  for (uint32_t rank = 0; rank < slots.size(); ++rank) {
    auto& x = slots[rank];
    x.input_bytes = input_count(what().kind(), world, rank) * element;
    x.output_bytes = output_count(what().kind(), world, rank) * element;
    if (in_place())
      x.output = x.buffer + ringmaster::in_place(what().kind(), world, rank).output * element;
  }
}

bool operation::is_in_its_place() const {
  auto world = request_of(what(), static_cast<uint32_t>(slots.size()), 0);
  for (uint32_t rank = 0; rank < slots.size(); ++rank) {
    auto& x = slots[rank];
    auto at = ringmaster::in_place(what().kind(), world, rank);
    bool apart = x.input >= x.output + x.output_bytes || x.output >= x.input + x.input_bytes;
    if (!apart && x.input - x.output != (at.input - at.output) * size_of(what().datatype()))
      return false;
  }
  return true;
}

caf::error operation::drop(device_id device) {
  auto place = slot_of(device);
  if (place == slots.end())
    return {};
  auto rank = static_cast<uint32_t>(place - slots.begin());
  auto ranks = static_cast<uint32_t>(slots.size());
  ensure(!moving, "a rank is dropped from an operation whose data does not move");
  ensure(what().counts().empty() || what().counts_size() == static_cast<int>(ranks)
           || what().counts_size() == static_cast<int>(ranks * ranks),
         "counts are for each rank, or for each pair");
  if (has_root(what().kind()) && rank == what().root())
    return make_error(errc::device_lost, fmt::format("its root, rank {} (device 0x{:x}), was lost", rank, device));
  if (what().kind() == proto::SEND_RECV && rank == what().peer())
    return make_error(errc::device_lost, fmt::format("its receiver, rank {} (device 0x{:x}), was lost", rank, device));
  auto& left = *plan.mutable_collective();
  auto& counts = *left.mutable_counts();
  if (counts.size() == static_cast<int>(ranks))
    erase_at(counts, static_cast<int>(rank));
  else if (!counts.empty()) // a matrix
    for (auto i = static_cast<int>(ranks * ranks) - 1; i >= 0; --i)
      if (static_cast<uint32_t>(i) / ranks == rank || static_cast<uint32_t>(i) % ranks == rank)
        erase_at(counts, i);
  if (left.factors_size() == static_cast<int>(ranks) && ranks > 1)
    erase_at(*left.mutable_factors(), static_cast<int>(rank));
  if (rank < left.root())
    left.set_root(left.root() - 1);
  if (rank < left.peer())
    left.set_peer(left.peer() - 1);
  slots.erase(place);
  ensure(slots.empty() || !has_root(what().kind()) || what().root() < slots.size(), "the root is a rank");
  lay_out();
  return {};
}

void operation::begin(epoch_number in_epoch, uint32_t ranks, uint64_t unix_ns) {
  ensure(state == phase::running && !moving, "an attempt starts that was neither decided nor cancelled");
  ensure(in_epoch != epoch_number{} && slots.size() == ranks, "an attempt is over all ranks of an epoch");
  epoch = in_epoch;
  world_size = ranks;
  started_ns = unix_ns;
  finished.clear();
  ++attempts;
  lay_out();
}

proto::OperationPlan operation::plan_of_attempt() const {
  ensure(attempts > 0 && sequence != sequence_number{}, "a plan is of an attempt");
  auto result = plan;
  result.set_epoch(epoch.value);
  result.set_sequence(sequence.value);
  if (result.has_origin())
    result.mutable_origin()->set_group(group);
  for (auto addresses :
       {result.mutable_device_ids(), result.mutable_input_addresses(), result.mutable_output_addresses()})
    addresses->Reserve(static_cast<int>(slots.size()));
  for (auto& x : slots) {
    result.add_device_ids(x.device.value);
    result.add_input_addresses(x.input);
    result.add_output_addresses(x.output);
  }
  return result;
}

caf::expected<operation> make_operation(const proto::CollectiveRequest& request, const std::string& algorithm,
                                        std::span<const rank_device> members) {
  RETURN_ERROR(check_types(request.collective(), members.size()));
  operation op;
  auto& plan = op.plan;
  plan.set_comm_id(request.comm_id());
  *plan.mutable_collective() = request.collective();
  plan.mutable_collective()->set_algorithm(algorithm);
  plan.set_in_place(request.outputs().empty());
  auto& what = request.collective();
  auto ranks = static_cast<uint32_t>(members.size());
  auto world = request_of(what, ranks, 0);
  if (auto known = find_algorithm(what.kind(), algorithm, world); !known)
    return std::move(known.error());
  auto element = size_of(what.datatype());
  std::vector<uint64_t> in_bytes, out_bytes, larger;
  for (auto list : {&in_bytes, &out_bytes, &larger})
    list->reserve(ranks);
  op.slots.reserve(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    auto in = input_count(what.kind(), world, rank), out = output_count(what.kind(), world, rank);
    if (std::max(in, out) > UINT64_MAX / 2 / element)
      return invalid(fmt::format("count {} of {} is more bytes than an address can count", std::max(in, out),
                                 name_of(what.datatype())));
    bool dropped = members[rank].dropped;
    in_bytes.push_back(dropped ? 0 : in * element);
    out_bytes.push_back(dropped ? 0 : out * element);
    larger.push_back(std::max(in_bytes.back(), out_bytes.back()));
  }
  op.bytes = *std::max_element(larger.begin(), larger.end());
  bool in_place = op.in_place();
  RETURN_ERROR(check_ranks(request.inputs(), "input", in_place ? larger : in_bytes));
  if (!in_place)
    RETURN_ERROR(check_ranks(request.outputs(), "output", out_bytes));
  if (in_place && what.kind() == proto::ALL_TO_ALL && !what.counts().empty())
    RETURN_ERROR(check_swap(what, ranks));
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    auto& device = members[rank].metadata;
    operation::slot x{members[rank].id(), address_of(request.inputs(), rank, device), 0, 0, in_bytes[rank],
                      out_bytes[rank]};
    if (in_place) {
      x.buffer = x.input;
      RETURN_ERROR(check_range(device, rank, "input", x.buffer, larger[rank]));
      auto at = ringmaster::in_place(what.kind(), world, rank);
      x.input = x.buffer + at.input * element;
      x.output = x.buffer + at.output * element;
    } else {
      x.output = address_of(request.outputs(), rank, device);
      RETURN_ERROR(check_range(device, rank, "input", x.input, x.input_bytes));
      RETURN_ERROR(check_range(device, rank, "output", x.output, x.output_bytes));
      if (x.input_bytes != 0 && x.output_bytes != 0 && x.input < x.output + x.output_bytes
          && x.output < x.input + x.input_bytes)
        return invalid(fmt::format(
          "rank {}: input at 0x{:x} and output at 0x{:x} of {} bytes overlap; in place means to give no outputs", rank,
          x.input, x.output, x.output_bytes));
    }
    op.slots.push_back(x);
  }
  return op;
}

} // namespace ringmaster
