#include "client/api/handles.hpp"

#include "client/process_group.hpp"
#include "messages/wire_ids.hpp"
#include "runtime/invariants/ensure.hpp"

#include <thread>

namespace ringmaster::api {

namespace {

ringmaster::rank_buffers to_internal(const rank_buffers& x) {
  return {x.input, x.output, x.in_place};
}

ringmaster::reduction_choice to_internal(const reduction& x) {
  return {static_cast<gpu_sim::ReduceOp>(x.op), x.user_op, x.factor};
}

ringmaster::call_options to_internal(const call_options& x) {
  return {x.algorithm, x.chunk, x.timeout};
}

proto::DataType to_internal(datatype x) {
  return static_cast<proto::DataType>(x);
}

} // namespace

// -- work --

struct work::state {
  ringmaster::work calls;
};

namespace {

work public_work(ringmaster::work calls) {
  return work{std::make_shared<work::state>(work::state{std::move(calls)})};
}

} // namespace

work::work() : state_(std::make_shared<state>()) {}
work::work(std::shared_ptr<state> calls) : state_(std::move(calls)) {}

bool work::finished() const {
  return state_->calls.test();
}

expected<void> work::wait(std::chrono::nanoseconds within) const {
  return public_result(state_->calls.wait(within));
}

epoch_number work::epoch() const {
  return state_->calls.epoch();
}

// -- a rank's communicator --

const std::shared_ptr<client_state>& rank_communicator::state::host() {
  if (!memory)
    memory = std::make_shared<client_state>(home, coordinator, ringmaster::client::usual_limit);
  return memory;
}

namespace {

std::unique_ptr<rank_communicator::state> state_of(
  std::shared_ptr<cluster::state> home, const coordinator_actor& coordinator, ringmaster::rank_communicator own) {
  auto result = std::make_unique<rank_communicator::state>();
  result->home = std::move(home);
  result->coordinator = coordinator;
  result->own = std::move(own);
  result->calls = &*result->own;
  return result;
}

} // namespace

rank_communicator::rank_communicator(std::unique_ptr<state> content) : state_(std::move(content)) {
  ensure(state_ && state_->calls != nullptr, "a rank's handle has a communicator");
}
rank_communicator::rank_communicator(rank_communicator&&) noexcept = default;
rank_communicator& rank_communicator::operator=(rank_communicator&&) noexcept = default;
rank_communicator::~rank_communicator() = default;

expected<rank_communicator> rank_communicator::attach(const cluster& home, communicator_id communicator,
                                                      uint32_t rank) {
  const auto& state = home.internals();
  auto coordinator = state->coordinator();
  if (!coordinator)
    return public_error(coordinator.error());
  auto calls = ringmaster::rank_communicator::attach(*state->system, *coordinator, communicator, rank);
  if (!calls)
    return public_error(calls.error());
  return rank_communicator{state_of(state, *coordinator, std::move(*calls))};
}

communicator_id rank_communicator::id() const {
  return state_->calls->id();
}

uint32_t rank_communicator::rank() const {
  return state_->calls->rank();
}

uint32_t rank_communicator::size() const {
  return state_->calls->size();
}

epoch_number rank_communicator::epoch() const {
  return state_->calls->epoch();
}

device_id rank_communicator::device() const {
  return id_of(state_->calls->device());
}

expected<device_memory> rank_communicator::allocate_bytes(uint64_t bytes) {
  const auto& host = state_->host();
  auto address = host->calls.allocate(device(), bytes);
  if (!address)
    return public_error(address.error());
  return device_memory{host, device(), *address, bytes};
}

work rank_communicator::all_reduce(const rank_buffers& buffers, uint64_t count, datatype type, const reduction& how,
                                   const call_options& options) {
  return public_work(state_->calls->all_reduce(to_internal(buffers), count, to_internal(type), to_internal(how),
                                               to_internal(options)));
}

work rank_communicator::reduce(const rank_buffers& buffers, uint64_t count, datatype type, uint32_t root,
                               const reduction& how, const call_options& options) {
  return public_work(state_->calls->reduce(to_internal(buffers), count, to_internal(type), root, to_internal(how),
                                           to_internal(options)));
}

work rank_communicator::broadcast(const rank_buffers& buffers, uint64_t count, datatype type, uint32_t root,
                                  const call_options& options) {
  return public_work(state_->calls->broadcast(to_internal(buffers), count, to_internal(type), root,
                                              to_internal(options)));
}

work rank_communicator::all_gather(const rank_buffers& buffers, uint64_t count, datatype type,
                                   const call_options& options) {
  return public_work(state_->calls->all_gather(to_internal(buffers), count, to_internal(type), to_internal(options)));
}

work rank_communicator::reduce_scatter(const rank_buffers& buffers, uint64_t count, datatype type, const reduction& how,
                                       const call_options& options) {
  return public_work(state_->calls->reduce_scatter(to_internal(buffers), count, to_internal(type), to_internal(how),
                                                   to_internal(options)));
}

work rank_communicator::all_to_all(const rank_buffers& buffers, uint64_t count, datatype type,
                                   const call_options& options) {
  return public_work(state_->calls->all_to_all(to_internal(buffers), count, to_internal(type), to_internal(options)));
}

work rank_communicator::barrier(const call_options& options) {
  return public_work(state_->calls->barrier(to_internal(options)));
}

work rank_communicator::send(uint64_t address, uint64_t count, datatype type, uint32_t to,
                             const call_options& options) {
  return public_work(state_->calls->send(address, count, to_internal(type), to, to_internal(options)));
}

work rank_communicator::receive(uint64_t address, uint64_t count, datatype type, uint32_t from,
                                const call_options& options) {
  return public_work(state_->calls->receive(address, count, to_internal(type), from, to_internal(options)));
}

void rank_communicator::group_start() {
  state_->calls->group_start();
}

work rank_communicator::group_end() {
  return public_work(state_->calls->group_end());
}

expected<std::optional<rank_communicator>> rank_communicator::split(int32_t color, int64_t key) {
  auto part = state_->calls->split(color, key);
  if (!part)
    return public_error(part.error());
  std::optional<rank_communicator> result;
  if (*part)
    result.emplace(state_of(state_->home, state_->coordinator, std::move(**part)));
  return result;
}

expected<void> rank_communicator::destroy() {
  return public_result(state_->host()->calls.destroy(id()));
}

expected<communicator_status> rank_communicator::status() {
  const auto found = state_->host()->calls.members(id());
  if (!found)
    return public_error(found.error());
  return public_status(*found);
}

expected<void> rank_communicator::update() {
  return public_result(state_->calls->update());
}

// -- the process group --

/// The handles are destroyed before the group whose communicators they call.
struct process_group::state {
  std::shared_ptr<cluster::state> home;
  std::unique_ptr<ringmaster::process_group> group;
  std::vector<rank_communicator> ranks;
};

process_group::process_group(std::unique_ptr<state> content) : state_(std::move(content)) {}
process_group::process_group(process_group&&) noexcept = default;
process_group& process_group::operator=(process_group&&) noexcept = default;
process_group::~process_group() = default;

expected<process_group> process_group::join(const cluster& home, uint32_t ranks_alone) {
  auto result = std::make_unique<state>();
  result->home = home.internals();
  auto group = ringmaster::process_group::init(*result->home->system, result->home->options, ranks_alone);
  if (!group)
    return public_error(group.error());
  result->group = std::move(*group);
  ensure(!result->group->ranks().empty(), "a process of a group runs at least one rank");
  {
    std::scoped_lock lock{result->home->guard};
    result->home->found = result->group->coordinator();
  }
  for (auto& each : result->group->ranks()) {
    auto handle = std::make_unique<rank_communicator::state>();
    handle->home = result->home;
    handle->coordinator = result->group->coordinator();
    handle->calls = &each;
    result->ranks.emplace_back(std::move(handle));
  }
  return process_group{std::move(result)};
}

uint32_t process_group::size() const {
  return state_->group->size();
}

std::vector<rank_communicator>& process_group::ranks() {
  return state_->ranks;
}

bool process_group::runs(uint32_t rank) const {
  return state_->group->plays(rank);
}

expected<void> process_group::run(const std::function<expected<void>(rank_communicator&)>& body) {
  std::vector<expected<void>> results(state_->ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        results[i] = body(state_->ranks[i]);
      } catch (const failure& problem) {
        results[i] = problem.why();
      } catch (const std::exception& problem) {
        results[i] = error{errc::aborted, problem.what()};
      }
    });
  for (auto& each : threads)
    each.join();
  for (auto& each : results)
    if (!each)
      return each;
  return {};
}

expected<void> process_group::finalize() {
  state_->ranks.clear();
  return public_result(state_->group->finalize());
}

} // namespace ringmaster::api
