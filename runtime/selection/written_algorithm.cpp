#include "runtime/selection/written_algorithm.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/proof/proof.hpp"
#include "runtime/simulation/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace ringmaster {

namespace {

constexpr uint64_t scratch_max = uint64_t{1} << 60; ///< Elements; their bytes fit into 64 bits for any datatype.

caf::error refused(std::string text) {
  return invalid(std::move(text));
}

/// With all offsets and counts multiplied by `factor`.
schedule scaled(schedule x, uint64_t factor) {
  x.scratch_count *= factor;
  for (auto& step : x.steps)
    for (auto* range : {&step.source, &step.destination}) {
      range->offset *= factor;
      range->count *= factor;
    }
  return x;
}

plan_request scaled(plan_request x, uint64_t factor) {
  x.count *= factor;
  for (auto& count : x.counts)
    count *= factor;
  return x;
}

/// The registered schedules, for functions that get only the request.
struct registration {
  std::string name;
  schedule_set written;
  algorithm_cost cost; ///< Of the collective as written.
};

std::optional<registration>& registered() {
  static std::optional<registration> one;
  return one;
}

caf::error check_registered(const plan_request& request) {
  auto factor = multiple_of(registered()->written, request);
  return factor ? caf::error{} : std::move(factor.error());
}

schedule plan_registered(const plan_request& request) {
  ensure(registered().has_value(), "schedules are planned after they were registered");
  const auto& written = registered()->written;
  ensure(request.rank < written.ranks.size(), "a registered schedule has every rank");
  return scaled(written.ranks[request.rank], *multiple_of(written, request));
}

algorithm_cost cost_of_registered(const plan_request& request) {
  auto cost = registered()->cost;
  auto factor = *multiple_of(registered()->written, request);
  cost.elements *= factor;
  cost.serial_elements *= factor;
  return cost;
}

} // namespace

caf::expected<uint64_t> multiple_of(const schedule_set& written, const plan_request& request) {
  const auto& own = written.request;
  if (request.world_size != own.world_size)
    return refused(fmt::format("the schedules are for a world size of {}, not {}", own.world_size, request.world_size));
  if (has_root(written.kind) && request.root != own.root)
    return refused(fmt::format("the schedules are for root {}, not {}", own.root, request.root));
  if (written.kind == proto::SEND_RECV && request.peer != own.peer)
    return refused(fmt::format("the schedules are for peer {}, not {}", own.peer, request.peer));
  if (written.kind == proto::BARRIER)
    return uint64_t{1};
  uint64_t factor = own.count == 0 ? 1 : request.count / own.count;
  for (size_t i = 0; i < own.counts.size() && i < request.counts.size(); ++i)
    if (own.counts[i] != 0)
      factor = request.counts[i] / own.counts[i];
  auto asked = scaled(own, factor);
  auto same = own.counts.empty() ? request.counts.empty() && asked.count == request.count
                                 : asked.counts == request.counts;
  if (factor == 0 || !same)
    return refused(own.counts.empty() && request.counts.empty() ? fmt::format(
                     "the schedules are for a count of {} or a multiple of it, not {}", own.count, request.count)
                                                                : "the schedules are for other counts");
  for (const auto& rank : written.ranks)
    if (rank.scratch_count > scratch_max / factor)
      return refused(fmt::format("{} times {} elements of scratch are more than the limit of {}", factor,
                                 rank.scratch_count, scratch_max));
  return factor;
}

caf::expected<schedule_set> scaled(schedule_set written, uint64_t factor) {
  auto request = scaled(written.request, factor);
  RETURN_ERROR(check_request(written.kind, request));
  if (auto known = multiple_of(written, request); !known)
    return std::move(known.error());
  written.request = std::move(request);
  for (auto& rank : written.ranks)
    rank = scaled(std::move(rank), factor);
  return written;
}

caf::expected<algorithm_cost> cost_of(const schedule_set& written) {
  ensure(written.ranks.size() == written.request.world_size, "there is a schedule for each rank");
  auto walked = prove(written.kind, written.request, written.ranks);
  auto most = [](const std::vector<uint64_t>& by_rank) { return *std::max_element(by_rank.begin(), by_rank.end()); };
  algorithm_cost cost{.rounds = walked.rounds,
                      .elements = most(walked.elements_sent),
                      .messages = std::max(most(walked.messages_sent), most(walked.messages_received))};
  network only_latency, only_bandwidth;
  only_latency.link = {1, std::numeric_limits<double>::infinity()};
  only_bandwidth.link = {0, 1e12}; // one byte per picosecond
  TRY(latencies, simulate(written.ranks, only_latency, 1));
  TRY(serial, simulate(written.ranks, only_bandwidth, 1));
  cost.latencies = static_cast<uint64_t>(latencies->time);
  cost.serial_elements = static_cast<uint64_t>(serial->time);
  return cost;
}

caf::error register_schedules(const std::string& name, schedule_set written) {
  if (registered())
    return refused(fmt::format("this process has the schedules \"{}\" already, and can have one set",
                               registered()->name));
  TRY(cost, cost_of(written));
  registered() = registration{name, std::move(written), *cost};
  auto problem = register_algorithm({.name = registered()->name,
                                     .kind = registered()->written.kind,
                                     .formula = "from a schedule file",
                                     .plan = plan_registered,
                                     .cost = cost_of_registered,
                                     .check = check_registered});
  if (problem)
    registered().reset();
  return problem;
}

} // namespace ringmaster
