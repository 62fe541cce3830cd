#include "actors/communicators/operation.hpp"

#include "runtime/schedule/blocks.hpp"
#include "runtime/reduction/reducer.hpp"
#include "runtime/algorithms/registry.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster {

namespace {

using addresses = google::protobuf::RepeatedField<uint64_t>; // by rank; 0: none

caf::error invalid(std::string text) {
  return make_error(errc::invalid_argument, std::move(text));
}

/// Whether [address, address + bytes) is within the device's memory.
caf::error check_range(const gpu_sim::DeviceMetadata& device, uint32_t rank, const char* what, uint64_t address,
                       uint64_t bytes) {
  auto min = device.minmemaddr().value();
  auto max = device.maxmemaddr().value();
  if (address >= min && address <= max && bytes <= max - address)
    return caf::none;
  return make_error(errc::out_of_range,
                    fmt::format("rank {}: the {} of {} bytes at 0x{:x} is not within the memory of device 0x{:x}, "
                                "[0x{:x}, 0x{:x})",
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

caf::error check_types(const proto::CollectiveRequest& request, size_t ranks) {
  if (size_of(request.datatype()) == 0 || !gpu_sim::ReduceOp_IsValid(request.op()))
    return invalid(fmt::format("datatype {} or reduction op {} is not one of this version's",
                               static_cast<int>(request.datatype()), static_cast<int>(request.op())));
  if (!reduces(request.kind()))
    return caf::none;
  if (auto known = reducer::of(request.datatype(), request.op(), request.user_op()); !known)
    return std::move(known.error());
  if (request.op() != gpu_sim::PREMUL_SUM)
    return caf::none;
  if (request.factors_size() != 1 && request.factors_size() != static_cast<int>(ranks))
    return invalid(fmt::format("premul_sum over {} ranks wants {} factors, or one for all, and there are {}", ranks, ranks,
                               request.factors_size()));
  for (auto factor : request.factors())
    if (auto problem = check_factor(request.datatype(), factor))
      return problem;
  return caf::none;
}

/// In place, counts that differ by direction would make two blocks of different sizes change places.
caf::error check_swap(const proto::CollectiveRequest& request, uint32_t ranks) {
  for (uint32_t a = 0; a < ranks; ++a)
    for (uint32_t b = a + 1; b < ranks; ++b) {
      auto there = request.counts(static_cast<int>(a * ranks + b));
      auto back = request.counts(static_cast<int>(b * ranks + a));
      if (there != back)
        return invalid(fmt::format("all_to_all in place: rank {} sends {} elements to rank {}, which sends {} back; in place "
                                   "both must be as many",
                                   a, there, b, back));
    }
  return caf::none;
}

template <class List>
void erase_at(List& list, int index) {
  list.erase(list.begin() + index);
}

} // namespace

plan_request request_of(const proto::OperationPlan& plan, uint32_t world_size, uint32_t rank) {
  return {.world_size = world_size,
          .rank = rank,
          .count = plan.count(),
          .root = plan.root(),
          .peer = plan.peer(),
          .counts = {plan.counts().begin(), plan.counts().end()},
          .chunk = plan.chunk_count()};
}

std::vector<operation::slot>::iterator operation::slot_of(uint64_t device) {
  return std::find_if(slots.begin(), slots.end(), [=](auto& x) { return x.device == device; });
}

void operation::lay_out() {
  auto world = request_of(plan, static_cast<uint32_t>(slots.size()), 0);
  auto element = size_of(plan.datatype());
  for (uint32_t rank = 0; rank < slots.size(); ++rank) {
    auto& x = slots[rank];
    x.input_bytes = input_count(plan.kind(), world, rank) * element;
    x.output_bytes = output_count(plan.kind(), world, rank) * element;
    if (in_place())
      x.output = x.buffer + ringmaster::in_place(plan.kind(), world, rank).output * element;
  }
}

bool operation::is_in_its_place() const {
  auto world = request_of(plan, static_cast<uint32_t>(slots.size()), 0);
  for (uint32_t rank = 0; rank < slots.size(); ++rank) {
    auto& x = slots[rank];
    auto at = ringmaster::in_place(plan.kind(), world, rank);
    bool apart = x.input >= x.output + x.output_bytes || x.output >= x.input + x.input_bytes;
    if (!apart && x.input - x.output != (at.input - at.output) * size_of(plan.datatype()))
      return false;
  }
  return true;
}

std::string operation::drop(uint64_t device) {
  auto place = slot_of(device);
  if (place == slots.end())
    return {};
  auto rank = static_cast<uint32_t>(place - slots.begin());
  auto ranks = static_cast<uint32_t>(slots.size());
  if (has_root(plan.kind()) && rank == plan.root())
    return fmt::format("its root, rank {} (device 0x{:x}), was lost", rank, device);
  if (plan.kind() == proto::SEND_RECV && rank == plan.peer())
    return fmt::format("its receiver, rank {} (device 0x{:x}), was lost", rank, device);
  auto& counts = *plan.mutable_counts();
  if (counts.size() == static_cast<int>(ranks))
    erase_at(counts, static_cast<int>(rank));
  else if (!counts.empty()) // a matrix
    for (auto i = static_cast<int>(ranks * ranks) - 1; i >= 0; --i)
      if (static_cast<uint32_t>(i) / ranks == rank || static_cast<uint32_t>(i) % ranks == rank)
        erase_at(counts, i);
  if (plan.factors_size() == static_cast<int>(ranks) && ranks > 1)
    erase_at(*plan.mutable_factors(), static_cast<int>(rank));
  if (rank < plan.root())
    plan.set_root(plan.root() - 1);
  if (rank < plan.peer())
    plan.set_peer(plan.peer() - 1);
  slots.erase(place);
  lay_out();
  return {};
}

caf::expected<operation> make_operation(const proto::CollectiveRequest& request, const std::string& algorithm,
                                        std::span<const member> members) {
  if (auto problem = check_types(request, members.size()))
    return problem;
  operation op;
  auto& plan = op.plan;
  plan.set_comm_id(request.comm_id());
  plan.set_kind(request.kind());
  plan.set_algorithm(algorithm);
  plan.set_datatype(request.datatype());
  plan.set_op(request.op());
  plan.set_count(request.count());
  plan.set_in_place(request.outputs().empty());
  plan.set_root(request.root());
  plan.set_peer(request.peer());
  *plan.mutable_counts() = request.counts();
  plan.set_chunk_count(request.chunk_count());
  plan.set_user_op(request.user_op());
  *plan.mutable_factors() = request.factors();
  auto ranks = static_cast<uint32_t>(members.size());
  auto world = request_of(plan, ranks, 0);
  if (auto known = find_algorithm(request.kind(), algorithm, world); !known)
    return std::move(known.error());
  auto element = size_of(request.datatype());
  std::vector<uint64_t> in_bytes, out_bytes, larger;
  for (auto list : {&in_bytes, &out_bytes, &larger})
    list->reserve(ranks);
  op.slots.reserve(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    auto in = input_count(request.kind(), world, rank), out = output_count(request.kind(), world, rank);
    if (std::max(in, out) > UINT64_MAX / 2 / element)
      return invalid(fmt::format("count {} of {} is more bytes than an address can count", std::max(in, out),
                                 name_of(request.datatype())));
    bool lost = members[rank].handle.device == nullptr;
    in_bytes.push_back(lost ? 0 : in * element);
    out_bytes.push_back(lost ? 0 : out * element);
    larger.push_back(std::max(in_bytes.back(), out_bytes.back()));
  }
  op.bytes = *std::max_element(larger.begin(), larger.end());
  bool in_place = op.in_place();
  if (auto problem = check_ranks(request.inputs(), "input", in_place ? larger : in_bytes))
    return problem;
  if (!in_place)
    if (auto problem = check_ranks(request.outputs(), "output", out_bytes))
      return problem;
  if (in_place && request.kind() == proto::ALL_TO_ALL && !request.counts().empty())
    if (auto problem = check_swap(request, ranks))
      return problem;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    auto& device = members[rank].metadata;
    operation::slot x{members[rank].id(), address_of(request.inputs(), rank, device), 0, 0, in_bytes[rank], out_bytes[rank]};
    if (in_place) {
      x.buffer = x.input;
      if (auto problem = check_range(device, rank, "input", x.buffer, larger[rank]))
        return problem;
      auto at = ringmaster::in_place(request.kind(), world, rank);
      x.input = x.buffer + at.input * element;
      x.output = x.buffer + at.output * element;
    } else {
      x.output = address_of(request.outputs(), rank, device);
      if (auto problem = check_range(device, rank, "input", x.input, x.input_bytes))
        return problem;
      if (auto problem = check_range(device, rank, "output", x.output, x.output_bytes))
        return problem;
      if (x.input_bytes != 0 && x.output_bytes != 0 && x.input < x.output + x.output_bytes && x.output < x.input + x.input_bytes)
        return invalid(fmt::format("rank {}: input at 0x{:x} and output at 0x{:x} of {} bytes overlap; in place means to "
                                   "give no outputs",
                                   rank, x.input, x.output, x.output_bytes));
    }
    op.slots.push_back(x);
  }
  return op;
}

} // namespace ringmaster
