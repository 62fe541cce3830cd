#include "tools/tune/tune_measure.hpp"

#include "actors/training/type_ids.hpp"
#include "client/cluster.hpp"
#include "client/training/training_run.hpp"
#include "messages/errc.hpp"
#include "messages/interfaces.hpp"
#include "messages/try.hpp"
#include "runtime/algorithms/parts/pieces.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/configuration/places.hpp"
#include "runtime/invariants/ensure.hpp"
#include "tools/bench/bench.hpp"
#include "tools/bench/bench_options.hpp"
#include "tools/console/output_file.hpp"
#include "tools/launch/scratch_directory.hpp"
#include "tools/processes/process_watch.hpp"
#include "tools/tune/tune_fit.hpp"
#include "training/data/synthetic_digits.hpp"
#include "training/language/collective_kind.hpp"
#include "training/layers/plain_layers.hpp"

#include <caf/actor_system.hpp>
#include <fmt/format.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

namespace ringmaster {

using namespace training;

namespace {

inline constexpr uint64_t training_memory = 8u << 20; ///< The minimum of a device.

constexpr uint32_t trained_ranks = 2, micro_batch = 64, batch = 4 * micro_batch;

caf::expected<run_settings> little_training(std::string_view strategy) {
  constexpr uint64_t seed = 1;
  constexpr uint32_t steps = 20;
  TRY(digits, make_synthetic_digits(seed, steps * batch, 10));
  run_settings result;
  result.data = std::move(*digits);
  result.ranks = trained_ranks;
  result.epochs = 2; // the second one is measured
  result.profiles = true;
  auto& job = result.job;
  job.layers = perceptron(std::vector<uint64_t>{28 * 28, 64, 10});
  job.shape.layers = static_cast<uint32_t>(job.layers.size());
  job.shape.global_batch = batch;
  job.shape.micro_batch = micro_batch;
  job.strategy = strategy_of(strategy);
  job.update.rate = 1e-3;
  return result;
}

/// A call with the first layer's parameters, or with the activations of a micro-batch. The samples match none of a
/// step, so that `time_of` returns the mean: the first call of a step finds its receiver asleep.
pending call_of(op what) {
  pending x;
  x.what = what;
  x.among = {0, trained_ranks, 1};
  if (is_collective(what)) {
    x.argument.kind = what == op::all_gather ? value_kind::weight : value_kind::weight_gradient;
  } else {
    x.peer = 1;
    x.argument.kind = value_kind::activation;
    x.argument.layer = 1;
    x.argument.samples.add(range_set{range{batch, batch + micro_batch}});
  }
  return x;
}

caf::expected<cost_sample> sample_of(const run_outcome& found, op what) {
  const auto call = call_of(what);
  std::vector<double> seconds;
  for (auto& step : found.profiles.steps)
    seconds.push_back(profiled_costs{*found.job, step.events}.time_of(call, trained_ranks));
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  if (middle == seconds.end() || *middle <= 0)
    return make_error(errc::aborted, "no step of the training was measured, so its communication is unknown");
  const auto kind = collective_kind_of(what);
  ensure(first_shared_memory(kind) != nullptr, "each kind of a training has a shared-memory algorithm");
  return cost_sample{transport::training,
                     kind,
                     std::string{first_shared_memory(kind)->name},
                     trained_ranks,
                     count_of(*found.job, call) * bytes_of(found.job->as),
                     *middle};
}

/// Measures the communication of two ranks of a training in this process, once both have arrived: an all_reduce after
/// the ranks have computed, an all_gather and a reduce_scatter back to back, and a send to the next rank. Each is the
/// median over the steps of a short training. The configuration needs the messages of actors/training/type_ids.hpp.
/// Errors: as of `training::train`.
caf::expected<std::vector<cost_sample>> measure_training_calls(caf::actor_system& system,
                                                               const coordinator_actor& coordinator) {
  static const std::pair<std::string_view, std::vector<op>> trainings[] = {
    {"ddp", {op::all_reduce}}, {"zero3", {op::all_gather, op::reduce_scatter}}, {"gpipe", {op::receive}}};
  std::vector<cost_sample> result;
  for (auto& [strategy, calls] : trainings) {
    TRY(what, little_training(strategy));
    TRY(found, train(system, coordinator, std::move(*what)));
    for (auto call : calls) {
      TRY(sample, sample_of(*found, call));
      result.push_back(std::move(*sample));
    }
  }
  return result;
}

constexpr uint32_t process_ranks[] = {2, 8};
constexpr uint64_t process_bytes[] = {8, 64u << 10, 1u << 20, 16u << 20};
/// A broadcast only copies, so it separates copying from reducing, which an all_reduce does equally.
constexpr std::pair<proto::CollectiveKind, const char*> process_algorithms[] = {
  {proto::ALL_REDUCE, "ring"},  {proto::ALL_REDUCE, "tree"},   {proto::ALL_REDUCE, "halving_doubling"},
  {proto::ALL_REDUCE, "naive"}, {proto::ALL_REDUCE, "direct"}, {proto::BROADCAST, "tree"},
  {proto::BROADCAST, "naive"},  {proto::BROADCAST, "direct"}};
/// Nodes, and devices of each. The last one has two levels: each process counts as a host.
constexpr std::pair<uint32_t, uint32_t> network_clusters[] = {{2, 1}, {4, 1}, {2, 4}};
constexpr uint64_t network_bytes_max = 4u << 20, network_factor = 64;
constexpr uint32_t network_iterations = 4;
constexpr std::chrono::minutes network_limit{2};
constexpr std::chrono::milliseconds look{500}; ///< Between two updates of the progress.

/// All times of a point: kind, algorithm, ranks, their hosts, bytes.
using gathered_times = std::map<
  std::tuple<proto::CollectiveKind, std::string, uint32_t, std::vector<uint32_t>, uint64_t>, std::vector<double>>;

double median(std::vector<double> x) {
  ensure(!x.empty(), "a median has values");
  auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

std::vector<cost_sample> medians(transport by, const gathered_times& times) {
  std::vector<cost_sample> result;
  for (const auto& [point, seconds] : times)
    result.push_back({by, std::get<0>(point), std::get<1>(point), std::get<2>(point), std::get<4>(point),
                      median(seconds), std::get<3>(point)});
  return result;
}

struct measured_point {
  std::string algorithm;
  uint64_t bytes = 0;
};

caf::error measure_points(bench& group, const bench_options& opts, const std::vector<uint32_t>& hosts,
                          const std::vector<measured_point>& points, gathered_times& times) {
  for (const auto& x : points) {
    TRY(row, group.measure(x.algorithm, x.bytes));
    if (row->wrong > 0)
      return make_error(errc::aborted,
                        fmt::format("{} by {} on {} devices gave {} wrong elements, so its time says nothing",
                                    name_of(opts.kind), x.algorithm, opts.devices, row->wrong));
    times[{opts.kind, x.algorithm, opts.devices, hosts, row->bytes}].push_back(row->time_us * 1e-6);
  }
  return caf::none;
}

/// Measures on these devices, or on any if there are none.
caf::error measure_group(client& user, const bench_options& opts, const tuned_group& on,
                         const std::vector<measured_point>& points, gathered_times& times) {
  bench group{user, opts};
  RETURN_ERROR(group.open(on.devices));
  auto problem = measure_points(group, opts, on.hosts, points, times);
  auto kept = group.close(); // also after an error: others may use the cluster
  return problem ? problem : kept;
}

caf::error measure_here(client& user, const tune_effort& effort, uint32_t ranks, gathered_times& times) {
  for (auto kind : {proto::ALL_REDUCE, proto::BROADCAST}) {
    bench_options opts;
    opts.kind = kind;
    opts.devices = ranks;
    opts.samples = effort.samples;
    opts.max_bytes = effort.bytes_max;
    std::vector<measured_point> points;
    for (auto bytes : process_bytes)
      for (auto& [of, algorithm] : process_algorithms)
        if (bytes <= effort.bytes_max && of == kind)
          points.push_back({algorithm, bytes});
    RETURN_ERROR(measure_group(user, opts, {}, points, times));
  }
  return caf::none;
}

std::string beside_us(const std::string& program) {
  return (program_directory() / program).string();
}

/// `meanwhile` is called now and then.
caf::error run_cluster(uint32_t nodes, uint32_t devices, const tune_effort& effort, const std::string& conf,
                       const std::string& json, const std::function<void()>& meanwhile) {
  TRY(watch, launch::process_watch::make());
  auto number = [](auto x) { return std::to_string(x); };
  std::vector<std::string> command{beside_us("caf-run"),
                                   "--conf",
                                   conf,
                                   "--local",
                                   number(nodes),
                                   "--devices-per-node",
                                   number(devices),
                                   "--",
                                   beside_us("ringmaster"),
                                   "bench",
                                   "all_reduce",
                                   "--algorithm",
                                   "all",
                                   "--devices",
                                   number(nodes * devices),
                                   "--min-bytes",
                                   "8",
                                   "--factor",
                                   number(network_factor),
                                   "--max-bytes",
                                   number(std::min(network_bytes_max, effort.bytes_max)),
                                   "--iterations",
                                   number(network_iterations),
                                   "--samples",
                                   number(effort.samples),
                                   "--chunk", // as the fit has them, whatever costs are configured
                                   number(default_chunk * sizeof(float)),
                                   "--no-memory-limit",
                                   "--json",
                                   json};
  TRY(cluster, (*watch)->start("caf-run", {.arguments = command}, launch::watched_process::output_use::kept));
  auto give_up = launch::process_watch::clock::now() + network_limit;
  while ((*cluster)->running()) {
    meanwhile();
    if (auto signals = (*watch)->step(std::min(give_up, launch::process_watch::clock::now() + look)); !signals.empty())
      return make_error(errc::aborted, fmt::format("ended by signal {}", signals.front().number));
    if ((*cluster)->running() && launch::process_watch::clock::now() >= give_up)
      return make_error(errc::timed_out,
                        fmt::format("a cluster of {} node processes has not ended its benchmark in {} minutes", nodes,
                                    network_limit.count()));
  }
  if (!(*cluster)->status()->success())
    return make_error(errc::aborted,
                      fmt::format("a cluster of {} node processes: {}", nodes, (*cluster)->describe_end()));
  return caf::none;
}

tuned_group group_of(const std::vector<rank_layout::place>& ranks, bool share_memory) {
  tuned_group result;
  std::map<std::string, uint32_t> hosts;
  for (auto& x : ranks) {
    auto host = share_memory ? x.host : fmt::format("{}", x.node);
    result.devices.push_back(x.device);
    result.hosts.push_back(hosts.emplace(host, static_cast<uint32_t>(hosts.size())).first->second);
  }
  if (hosts.size() < 2)
    result.hosts.clear();
  return result;
}

/// Takes the rows that `ringmaster bench --json` has written.
caf::error read_rows(const std::string& json, const std::vector<uint32_t>& hosts, gathered_times& times) {
  std::ifstream in{json};
  for (std::string line; std::getline(in, line);) {
    google::protobuf::Struct row;
    if (!google::protobuf::util::JsonStringToMessage(line, &row).ok())
      return malformed(fmt::format("'{}' in {} is no row of a benchmark", line, json));
    auto number = [&](const char* key) { return (*row.mutable_fields())[key].number_value(); };
    times[{proto::ALL_REDUCE, row.fields().at("algorithm").string_value(), static_cast<uint32_t>(number("devices")),
           hosts, static_cast<uint64_t>(number("size"))}]
      .push_back(number("time") * 1e-6);
  }
  return caf::none;
}

} // namespace

caf::expected<std::vector<cost_sample>> measure_in_process(configuration& cfg, const tune_effort& effort,
                                                           const tune_watch& watch) {
  auto opts = cfg.values();
  opts.device.count = *std::max_element(std::begin(process_ranks), std::end(process_ranks));
  opts.device.memory_bytes = std::max(2 * effort.bytes_max + (1u << 16), training_memory);
  opts.journal.dir.clear();
  if (opts.log.level == "info")
    opts.log.level = "warn";
  cfg.add_message_types<caf::id_block::ringmaster_training>();
  caf::actor_system system{cfg};
  TRY(home, cluster::start(system, opts, true));
  client user{system, (*home)->coordinator(), std::chrono::seconds{60}};
  if (auto there = user.devices(opts.device.count, std::chrono::seconds{60}); !there)
    return std::move(there.error());
  gathered_times times, trained;
  const double groups = static_cast<double>(effort.repeats * std::size(process_ranks));
  for (uint32_t i = 0, done = 0; i < effort.repeats; ++i) {
    for (auto ranks : process_ranks) {
      RETURN_ERROR(measure_here(user, effort, ranks, times));
      watch(++done / groups);
    }
    TRY(calls, measure_training_calls(system, (*home)->coordinator()));
    for (auto& x : *calls)
      trained[{x.kind, x.algorithm, x.ranks, {}, x.bytes}].push_back(x.seconds);
  }
  auto result = medians(transport::process, times);
  auto of_training = medians(transport::training, trained);
  result.insert(result.end(), of_training.begin(), of_training.end());
  return result;
}

caf::expected<std::vector<cost_sample>> measure_between_processes(const tune_effort& effort, const tune_watch& watch) {
  TRY(scratch, launch::scratch_directory::make());
  auto conf = fmt::format("{}/conf", scratch->path()); // on one host, memory would be used
  RETURN_ERROR(write_output_file(conf, "[route]\nuse=\"messages\"\n", "the cluster's configuration"));
  gathered_times times;
  const double clusters = static_cast<double>(effort.repeats * std::size(network_clusters));
  for (uint32_t i = 0, done = 0; i < effort.repeats; ++i)
    for (auto [nodes, devices] : network_clusters) {
      auto json = fmt::format("{}/rows-{}-{}-{}", scratch->path(), nodes, devices, i);
      if (auto problem = run_cluster(nodes, devices, effort, conf, json, [&] { watch(done / clusters); }))
        return problem;
      std::vector<uint32_t> hosts;
      for (uint32_t rank = 0; rank < nodes * devices && devices > 1; ++rank) // a node's devices have adjacent ranks
        hosts.push_back(rank / devices);
      RETURN_ERROR(read_rows(json, hosts, times));
      watch(++done / clusters);
    }
  return medians(transport::network, times);
}

std::vector<tuned_group> groups_of(const rank_layout& ranks, bool share_memory) {
  std::vector<rank_layout::place> all, one_of_each;
  std::set<node_id> nodes;
  for (auto& x : ranks.ranks()) {
    all.push_back(x);
    if (nodes.insert(x.node).second)
      one_of_each.push_back(x);
  }
  const auto& pair_of = one_of_each.size() < 2 ? all : one_of_each;
  ensure(pair_of.size() >= 2, "a joined group has at least two ranks");
  std::vector<tuned_group> result{group_of({pair_of.begin(), pair_of.begin() + 2}, share_memory)};
  for (auto* x : {&one_of_each, &all})
    if (x->size() > result.back().devices.size())
      result.push_back(group_of(*x, share_memory));
  return result;
}

caf::expected<std::vector<cost_sample>> measure_joined(client& user, const rank_layout& ranks, bool share_memory,
                                                       const tune_effort& effort, const tune_watch& watch) {
  bench_options opts;
  opts.algorithm = "all";
  opts.factor = network_factor;
  opts.max_bytes = std::min(network_bytes_max, effort.bytes_max);
  opts.iterations = network_iterations;
  opts.samples = effort.samples;
  opts.chunk_count = default_chunk;
  std::vector<measured_point> points;
  for (auto bytes : sizes_of(opts))
    for (auto& algorithm : algorithms_for(opts))
      points.push_back({algorithm, bytes});
  gathered_times times;
  auto groups = groups_of(ranks, share_memory);
  const double all = effort.repeats * static_cast<double>(groups.size());
  for (uint32_t i = 0, done = 0; i < effort.repeats; ++i)
    for (auto& on : groups) {
      opts.devices = static_cast<uint32_t>(on.devices.size());
      RETURN_ERROR(measure_group(user, opts, on, points, times));
      watch(++done / all);
    }
  return medians(transport::network, times);
}

} // namespace ringmaster
