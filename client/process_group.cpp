#include "client/process_group.hpp"

#include "actors/configuration/settings.hpp"
#include "actors/hosts/connections.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "client/rank_mailbox.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/logging/log.hpp"
#include "runtime/text/own_address.hpp"
#include "runtime/text/quantity_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <thread>
#include <utility>

namespace ringmaster {

namespace {

/// Limit for the coordinator's answer where the caller must not block, and asks again.
constexpr caf::timespan look_limit = std::chrono::seconds{1};

/// Connects to the coordinator when its process listens. If the launcher had started the coordinator before this
/// process and the connection is refused repeatedly, the coordinator has exited: then this fails before the limit.
caf::expected<coordinator_actor> connect_when_there(caf::actor_system& system, const launched_process& us,
                                                    caf::timespan limit, caf::timespan patience) {
  constexpr auto try_again = std::chrono::milliseconds{20};
  constexpr auto worth_a_word = std::chrono::seconds{3};
  auto where = text_of(us.coordinator);
  const auto began = awake_clock::now(), give_up = began + limit;
  constexpr int often = 20;
  int refusals = 0;
  for (auto told = false;;) {
    auto found = connect(system, where, std::max<caf::timespan>(give_up - awake_clock::now(), try_again), patience);
    if (found || code_of(found.error()) != errc::unreachable)
      return found;
    auto now = awake_clock::now();
    if (us.coordinator_runs && ++refusals >= often && now >= began + worth_a_word)
      return make_error(errc::timed_out,
                        fmt::format("the coordinator was to be at {} ({}) before this process, and is not: {}", where,
                                    us.coordinator_origin, render(found.error())));
    if (now >= give_up)
      return make_error(errc::timed_out,
                        fmt::format("rank 0 was not found at {} ({}) within {}. MASTER_ADDR and MASTER_PORT, or "
                                    "RINGMASTER_COORDINATOR=HOST:PORT, say on every rank where it is. Why: {}",
                                    where, us.coordinator_origin, duration_text(limit), render(found.error())));
    if (now >= began + worth_a_word && !std::exchange(told, true))
      spdlog::warn("rank {} waits for rank 0 at {} ({}), for {} at most: {}", us.rank, where, us.coordinator_origin,
                   duration_text(limit), render(found.error()));
    std::this_thread::sleep_for(try_again);
  }
}

/// The configured address counts; but loopback, which is the default, is not where ranks of other hosts come.
std::string listen_host(const options& opts, const endpoint& where) {
  const auto configured = listening_address(opts.coordinator.host);
  if (configured != "auto" && !is_loopback(configured))
    return configured;
  return is_loopback(where.host) ? listening_address(where.host) : any_address();
}

/// "; the coordinator there says: ...", which names both jobs, where that of another job has the port that rank 0 of
/// ours cannot get. Empty: it is none.
std::string text_of_other_job(caf::actor_system& system, const launched_process& us) {
  auto other = connect(system, text_of(us.coordinator), look_limit);
  if (!other)
    return {};
  proto::RendezvousRequest request; // of no world: it is refused in any case, and first of all because of the job
  request.set_job(us.identity);
  auto answer = client{system, *other, look_limit}.ask_within<proto::RendezvousResponse>(look_limit,
                                                                                         std::move(request));
  return answer || code_of(answer.error()) != errc::refused
           ? std::string{}
           : fmt::format("; the coordinator there says: {}", render(answer.error()));
}

} // namespace

caf::expected<std::unique_ptr<process_group>> process_group::init(caf::actor_system& system, const options& opts,
                                                                  uint32_t ranks_alone) {
  TRY(launched, launched_process_of(process_environment(),
                                    {opts.coordinator.port, opts.coordinator.port != options{}.coordinator.port}));
  start_log(opts);
  std::unique_ptr<process_group> result{new process_group{system, opts}};
  result->launched_ = std::move(*launched);
  if (!result->launched_) {
    RETURN_ERROR(result->play_all(ranks_alone));
    return result;
  }
  auto& us = *result->launched_;
  if (auto problem = result->play_one())
    return make_error(code_of(problem),
                      fmt::format("rank {} of {} ({}): {}", us.rank, us.world_size, us.launcher, render(problem)));
  return result;
}

caf::error process_group::play_all(uint32_t count) {
  options_.device.count = std::max(options_.device.count, count); // of a cluster of its own
  TRY(home, cluster::open(system_, options_));
  cluster_ = std::move(*home);
  owner_.emplace(system_, coordinator());
  if (auto there = owner_->devices(count, options_.ranks.join_timeout); !there)
    return std::move(there.error());
  TRY(made, owner_->comm_init(count));
  size_ = count;
  for (uint32_t rank = 0; rank < count; ++rank) {
    TRY(handle, rank_communicator::attach(system_, coordinator(), id_of(*made), rank));
    ranks_.push_back(std::move(*handle));
  }
  for (auto& rank : ranks_)
    devices_.push_back(id_of(rank.device()));
  ensure(ranks_.size() == size_ && devices_.size() == size_, "this process runs all ranks, each on a device");
  return caf::none;
}

caf::error process_group::play_one() {
  auto& us = *launched_;
  if (us.join_limit && options_.ranks.join_timeout == options{}.ranks.join_timeout)
    options_.ranks.join_timeout = *us.join_limit;
  name_ = us.job.empty() ? "world" : "world of " + us.job;
  options_.device.count = 1;
  if (options_.node.name.empty())
    options_.node.name = node_name_of_rank(us.rank, us.job);
  RETURN_ERROR(open_cluster());
  options_.node.join = text_of(us.coordinator);
  // The process of the coordinator listens already.
  TRY(node, own_node::start(system_, options_, coordinator(), !us.hosts_coordinator(), own_node::purpose::plays_rank,
                            us.identity));
  node_ = std::move(*node);
  TRY(devices, node_->await_devices(coordinator(), options_.ranks.join_timeout));
  return meet_others(devices->front());
}

caf::error process_group::open_cluster() {
  auto& us = *launched_;
  if (!us.hosts_coordinator()) {
    TRY(found, connect_when_there(system_, us, options_.ranks.join_timeout, options_.node.orphan_timeout));
    cluster_ = cluster::of(system_, std::move(*found));
    return caf::none;
  }
  TRY(home, cluster::start(system_, options_, false, {us.identity}));
  cluster_ = std::move(*home);
  auto host = listen_host(options_, us.coordinator);
  auto port = listen_for(coordinator(), system_, host, us.coordinator.port);
  if (port)
    return caf::none;
  if (code_of(port.error()) == errc::invalid_argument)
    return std::move(port.error());
  return make_error(errc::io_error, fmt::format("cannot listen at {} for the other ranks: {}{}; set MASTER_PORT, or "
                                                "RINGMASTER_COORDINATOR=HOST:PORT, to the same free one on every rank",
                                                text_of(endpoint{host, us.coordinator.port}), render(port.error()),
                                                text_of_other_job(system_, us)));
}

caf::error process_group::meet_others(device_id device) {
  auto& us = *launched_;
  proto::RendezvousRequest request;
  request.set_group(name_);
  request.set_rank(us.rank);
  request.set_world_size(us.world_size);
  request.set_device_id(device.value);
  request.set_timeout_ns(static_cast<uint64_t>(options_.ranks.join_timeout.count()));
  request.set_job(us.identity);
  client host{system_, coordinator()};
  auto all = host.ask_within<proto::RendezvousResponse>(
    options_.ranks.join_timeout + std::chrono::seconds{5},
    std::move(request)); // the coordinator's own error arrives first
  if (!all)
    return std::move(all.error());
  if (all->devices_size() != static_cast<int>(us.world_size) || all->node_ids_size() != all->devices_size())
    return malformed(fmt::format("the coordinator names the devices of {} ranks, and {} are to meet",
                                 all->devices_size(), us.world_size));
  gpu_sim::GetCommStatusResponse members; // as all of them have it, although one may have gone by now
  members.set_epoch(1);
  *members.mutable_devices() = all->devices();
  size_ = us.world_size;
  for (auto& each : all->devices())
    devices_.push_back(id_of(each));
  nodes_.assign(all->node_ids().begin(), all->node_ids().end());
  ranks_.emplace_back(system_, coordinator(), communicator_id{all->comm_id()}, members, us.rank);
  ensure(nodes_.size() == size_ && devices_.size() == size_, "each rank is a process with a device");
  ensure(ranks_.size() == 1 && ranks_.front().rank() == us.rank, "this process runs the rank of the launcher");
  TRY(memory, node_->map_memory(ranks_.front().device()));
  auto device_of_this_process = std::make_shared<own_device>();
  device_of_this_process->memory = std::move(*memory);
  ranks_.front().meet_by(std::move(device_of_this_process));
  return caf::none;
}

bool process_group::plays(uint32_t rank) const noexcept {
  return std::any_of(ranks_.begin(), ranks_.end(), [=](auto& x) { return x.rank() == rank; });
}

bool process_group::has_process_of(uint32_t rank) const {
  ensure(rank < size_, "a rank is one of the group");
  if (nodes_.empty())
    return true; // this one
  const auto cluster = client{system_, coordinator(), look_limit}.devices();
  return !cluster || std::ranges::any_of(cluster->nodes(), [&](auto& x) { return x.node_id() == nodes_.at(rank); });
}

std::optional<device_id> process_group::device_in_place_of(device_id lost) const {
  if (!node_)
    return std::nullopt;
  const auto cluster = client{system_, coordinator(), look_limit}.devices();
  if (!cluster)
    return std::nullopt;
  for (auto each : node_->devices_in(*cluster))
    if (each != lost)
      return each;
  return std::nullopt;
}

caf::error process_group::finalize() {
  if (ranks_.empty())
    return caf::none;
  if (owner_) {
    auto id = ranks_.front().id();
    ranks_.clear();
    return owner_->destroy(id);
  }
  ensure(launched_.has_value(), "a process with one rank was launched");
  proto::FinalizeRequest request;
  request.set_group(name_);
  request.set_rank(launched_->rank);
  request.set_timeout_ns(static_cast<uint64_t>(options_.ranks.leave_timeout.count()));
  client host{system_, coordinator()};
  auto all = host.ask_within<proto::FinalizeResponse>(options_.ranks.leave_timeout + std::chrono::seconds{5},
                                                      std::move(request));
  ranks_.clear();
  return all ? caf::error{} : std::move(all.error());
}

void process_group::leave() {
  if (ranks_.empty() || owner_)
    return;
  proto::FinalizeRequest request;
  request.set_group(name_);
  request.set_rank(launched_->rank);
  request.set_timeout_ns(1'000'000);
  client host{system_, coordinator()};
  auto answer = host.ask_within<proto::FinalizeResponse>(look_limit, std::move(request));
  if (!answer && code_of(answer.error()) != errc::timed_out) // that the others still work is expected
    spdlog::debug("rank {} could not announce that it leaves: {}", launched_->rank, render(answer.error()));
}

process_group::~process_group() {
  ranks_.clear();
  owner_.reset();
  node_.reset();
  if (launched_ && launched_->hosts_coordinator() && cluster_)
    await_leaving();
}

void process_group::await_leaving() {
  constexpr auto look_again = std::chrono::milliseconds{5};
  client host{system_, coordinator()};
  for (auto give_up = awake_clock::now() + options_.ranks.leave_timeout;;) {
    auto there = host.devices();
    if (!there || there->nodes().empty())
      return;
    if (awake_clock::now() >= give_up) {
      spdlog::warn("rank 0 ends the coordinator after {}, while {} of other ranks are there",
                   duration_text(options_.ranks.leave_timeout),
                   counted(static_cast<uint64_t>(there->nodes_size()), "process"));
      return;
    }
    std::this_thread::sleep_for(look_again);
  }
}

} // namespace ringmaster
