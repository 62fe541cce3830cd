#include "client/parallel/tensor_group.hpp"

#include "actors/scheduling/awake_clock.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

namespace ringmaster::parallel {

namespace {

/// For the communicator's own sentence to come first.
constexpr std::chrono::seconds grace_period{5};
/// Whether ranks have been lost meanwhile.
constexpr std::chrono::milliseconds look_every{100};

/// By name, so that what is sent does not depend on what "auto" takes.
std::string_view algorithm_of(proto::CollectiveKind kind) {
  return kind == proto::ALL_TO_ALL ? "pairwise" : "ring";
}

/// Elements that the rank sends.
caf::expected<uint64_t> sent_elements(proto::CollectiveKind kind, const plan_request& request) {
  TRY(steps, plan(kind, algorithm_of(kind), request));
  uint64_t result = 0;
  for (auto& each : steps->steps)
    if (each.what == action::send)
      result += each.source.count;
  return result;
}

} // namespace

tensor_group::~tensor_group() {
  if (bytes_ > 0)
    host_.free(id_of(self_.device()), address_);
}

caf::error tensor_group::reserve(uint64_t bytes) {
  if (bytes <= bytes_)
    return caf::none;
  const auto device = id_of(self_.device());
  if (bytes_ > 0)
    RETURN_ERROR(host_.free(device, address_));
  bytes_ = 0;
  TRY(got, host_.allocate(device, bytes));
  ensure(bytes_ == 0, "a group has one range of its device's memory at a time");
  address_ = *got;
  bytes_ = bytes;
  return caf::none;
}

caf::error tensor_group::wait_for(const work& calls, std::string_view what) {
  const auto who = fmt::format("rank {} of communicator {}: {}", self_.rank(), self_.id(), what);
  const auto limit = limit_ + grace_period;
  for (const auto give_up = awake_clock::actor_now() + limit;;) {
    calls.wait(look_every);
    const bool ended = calls.test();
    if (ended && !calls.error() && calls.epoch() == self_.epoch())
      return caf::none;
    // A rank that has lost a neighbour makes no more calls; the others need not wait for the limit.
    auto now = host_.members(self_.id());
    const bool changed = now && now->epoch() != self_.epoch().value, late = awake_clock::actor_now() >= give_up;
    if (now && !changed && !ended && !late)
      continue;
    if (!ended)
      bytes_ = 0; // it may still write there: that memory goes with the client
    if (changed || (ended && !calls.error()))
      return make_error(errc::device_lost, fmt::format("{}: the group has lost a rank: {}", who,
                                                       now ? now->asyncerror() : render(now.error())));
    if (ended)
      return calls.error();
    return now ? make_error(errc::timed_out, fmt::format("{}: it has not ended within {}", who, duration_text(limit)))
               : std::move(now.error());
  }
}

caf::expected<std::vector<float>> tensor_group::staged(std::string_view what, std::span<const float> input,
                                                       uint64_t count, const calls_made& make) {
  RETURN_ERROR(reserve(std::max<uint64_t>(input.size() + count, 1) * sizeof(float)));
  const auto device = id_of(self_.device());
  ensure(bytes_ >= input.size_bytes() + count * sizeof(float), "input and output fit the reserved memory");
  const rank_buffers buffers{address_, address_ + input.size_bytes()};
  if (!input.empty())
    RETURN_ERROR(host_.copy_to_device(device, buffers.input,
                                      byte_block::of(std::vector<float>(input.begin(), input.end()))));
  RETURN_ERROR(wait_for(make(buffers, {.timeout = limit_}), what));
  if (count == 0)
    return std::vector<float>{};
  TRY(output, host_.copy_to_host(device, buffers.output, count * sizeof(float)));
  ensure(output->size() == count * sizeof(float), "a copy has the requested size");
  const auto values = output->as<float>();
  return std::vector<float>(values.begin(), values.end());
}

caf::expected<std::vector<float>> tensor_group::collective(proto::CollectiveKind kind, std::span<const float> input) {
  const bool by_blocks = kind == proto::REDUCE_SCATTER || kind == proto::ALL_TO_ALL;
  if (by_blocks && input.size() % size() != 0)
    return invalid(fmt::format("{}: {} numbers are no {} equal blocks, one for each rank", name_of(kind), input.size(),
                               size()));
  plan_request request{.world_size = size(), .rank = rank()};
  request.count = by_blocks ? input.size() / size() : input.size();
  TRY(sent, sent_elements(kind, request));
  proto::RankCall::Part part;
  auto& its = *part.mutable_collective();
  its.set_kind(kind);
  its.set_count(request.count);
  its.set_datatype(proto::FLOAT32);
  auto result = staged(name_of(kind), input, output_count(kind, request, rank()),
                       [&](const rank_buffers& buffers, call_options opts) {
                         part.set_input(buffers.input);
                         part.set_output(buffers.output);
                         opts.algorithm = algorithm_of(kind);
                         return self_.call(part, opts);
                       });
  if (result)
    bytes_sent_ += *sent * sizeof(float);
  return result;
}

caf::expected<std::vector<float>> tensor_group::all_reduce(std::span<const float> x) {
  return collective(proto::ALL_REDUCE, x);
}

caf::expected<std::vector<float>> tensor_group::all_gather(std::span<const float> block) {
  return collective(proto::ALL_GATHER, block);
}

caf::expected<std::vector<float>> tensor_group::reduce_scatter(std::span<const float> blocks) {
  return collective(proto::REDUCE_SCATTER, blocks);
}

caf::expected<std::vector<float>> tensor_group::all_to_all(std::span<const float> blocks) {
  return collective(proto::ALL_TO_ALL, blocks);
}

} // namespace ringmaster::parallel
