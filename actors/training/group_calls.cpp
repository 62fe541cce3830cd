#include "actors/training/group_calls.hpp"

#include "actors/calls/answers.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/operations/fusing.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/request_of.hpp"
#include "runtime/text/quantity_text.hpp"
#include "training/language/collective_kind.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

namespace {

/// The ranks that take part. A pair is one group in both directions.
group group_of(const exchange_desk::exchange& x) {
  const auto& first = x.front().about;
  if (first.what != op::send)
    return first.among;
  const auto low = std::min(first.rank, first.peer), high = std::max(first.rank, first.peer);
  return {low, 2, high - low};
}

std::vector<uint32_t> ranks_of(const group& x) {
  std::vector<uint32_t> result;
  for (uint32_t i = 0; i < x.count; ++i)
    result.push_back(x.rank(i));
  return result;
}

proto::CollectiveRequest request_of(op kind, uint64_t count, precision as) {
  proto::CollectiveRequest result;
  auto& what = *result.mutable_collective();
  what.set_kind(collective_kind_of(kind));
  what.set_algorithm("auto");
  what.set_datatype(as == precision::float32 ? proto::FLOAT32 : proto::FLOAT64);
  what.set_op(gpu_sim::SUM);
  what.set_count(count);
  return result;
}

proto::CollectiveRequest request_of(const exchange_desk::exchange& x, group among, precision as) {
  const auto& first = x.front().about;
  auto result = request_of(first.what, x.front().count, as);
  auto& what = *result.mutable_collective();
  const bool in_place = first.what == op::all_reduce || first.what == op::broadcast;
  for (uint32_t i = 0; i < among.count; ++i) {
    result.add_inputs(0);
    if (!in_place)
      result.add_outputs(0);
  }
  ensure(x.size() == among.count, "all ranks of a group take part in its operation");
  for (auto& each : x) {
    const auto i = static_cast<int>(among.index_of(each.about.rank));
    const bool shows = each.about.what != op::receive;
    result.set_inputs(i, !shows ? 0 : in_place ? each.output : each.input);
    if (!in_place)
      result.set_outputs(i, each.about.what == op::send ? 0 : each.output);
  }
  if (first.what == op::send) {
    what.set_root(among.index_of(first.rank));
    what.set_peer(among.index_of(first.peer));
  } else if (first.what == op::broadcast) {
    const auto root = among.index_of(first.peer);
    what.set_root(root);
    what.set_count(x[root].count);
  }
  return result;
}

/// The larger of a rank's input and output.
uint64_t moved_bytes(const proto::Collective& what, uint32_t ranks) {
  const auto world = ringmaster::request_of(what, ranks, 0);
  return std::max(input_count(what.kind(), world, 0), output_count(what.kind(), world, 0)) * size_of(what.datatype());
}

} // namespace

void group_calls::run(const exchange_desk::exchange& x, done_function done) {
  ensure(!x.empty(), "an exchange has ranks");
  const auto among = group_of(x);
  run(ranks_of(among), request_of(x, among, settings_.as), std::move(done));
}

void group_calls::broadcast(std::span<const place> all, uint64_t count, done_function done) {
  ensure(all.size() > 1 && all.front().address != 0, "a broadcast has a source and another rank");
  auto request = request_of(op::broadcast, count, settings_.as);
  std::vector<place> in_order{all.begin(), all.end()};
  std::ranges::sort(in_order, {}, &place::rank);
  std::vector<uint32_t> ranks;
  for (auto& each : in_order) {
    if (each.rank == all.front().rank)
      request.mutable_collective()->set_root(static_cast<uint32_t>(ranks.size()));
    request.add_inputs(each.address);
    ranks.push_back(each.rank);
  }
  run(std::move(ranks), std::move(request), std::move(done));
}

void group_calls::run(std::vector<uint32_t> ranks, proto::CollectiveRequest request, done_function done) {
  ensure(ranks.size() > 1, "an operation has two ranks or more");
  ensure(std::ranges::is_sorted(ranks), "a communicator has its ranks in their order");
  auto& its = lines_[ranks];
  const auto bytes = moved_bytes(request.collective(), static_cast<uint32_t>(ranks.size()));
  its.waiting.push_back({std::move(request), bytes, std::move(done)});
  if (its.ranks == 0)
    open(its, ranks);
}

void group_calls::flush() {
  for (auto& [where, each] : lines_)
    if (!each.busy && !ending_)
      start_next(each);
}

void group_calls::hold() {
  const auto all = ranks_of({0, static_cast<uint32_t>(settings_.devices.size()), 1});
  if (auto& its = lines_[all]; its.ranks == 0)
    open(its, all);
}

void group_calls::open(line& to, const std::vector<uint32_t>& ranks) {
  ensure(to.ranks == 0 && !to.busy, "a communicator is created once");
  ensure(!ending_, "no communicator is created after the end");
  to.ranks = static_cast<uint32_t>(ranks.size());
  to.busy = true;
  gpu_sim::CommInitRequest request;
  ensure(ranks.back() < settings_.devices.size(), "a communicator is of ranks of the step");
  for (auto rank : ranks)
    request.add_deviceids(settings_.devices[rank].value);
  request.set_numdevices(to.ranks);
  request.set_policy(proto::ABORT);
  request.set_deterministic(settings_.deterministic);
  request.set_name(settings_.name);
  self_->request(settings_.coordinator, settings_.limit, request)
    .then(
      [this, keep = shared_from_this(), &to](const gpu_sim::CommInitResponse& y) {
        if (auto problem = error_in(y))
          return not_opened(to, problem);
        to.communicator = communicator_id{y.commid()};
        if (ending_)
          destroy(to.communicator, destroy_tries, [](auto&) {}); // it has run nothing
        else
          start_next(to);
      },
      [this, keep = shared_from_this(), &to](const caf::error& problem) { not_opened(to, problem); });
}

void group_calls::not_opened(line& to, const caf::error& problem) {
  to.under_way = std::exchange(to.waiting, {});
  ended(to, problem);
}

size_t group_calls::count_together(std::span<const call> waiting) {
  constexpr uint64_t bytes_max = 16u << 20; // larger series take longer than the messages that they save
  size_t result = 0;
  for (uint64_t bytes = 0; result < std::min<size_t>(waiting.size(), series_plans_max); ++result) {
    bytes += waiting[result].bytes;
    if (result > 0 && bytes > bytes_max)
      break;
  }
  return result;
}

void group_calls::take_next(line& of) {
  ensure(of.under_way.empty(), "calls are taken when those before have ended");
  const auto end = of.waiting.begin() + static_cast<ptrdiff_t>(count_together(of.waiting));
  of.under_way.assign(std::move_iterator{of.waiting.begin()}, std::move_iterator{end});
  of.waiting.erase(of.waiting.begin(), end);
}

void group_calls::start_next(line& of) {
  ensure(of.communicator != communicator_id{}, "operations start on a communicator that exists");
  take_next(of);
  of.busy = !of.under_way.empty();
  if (!of.busy)
    return;
  of.due = self_->clock().now() + 2 * settings_.limit; // later than the communicator's own limit
  proto::CommWaitRequest wait;
  wait.set_comm_id(of.communicator.value);
  wait.set_timeout_ns(static_cast<uint64_t>(settings_.limit.count()));
  auto refused = std::make_shared<caf::error>(); // both requests are answered in their order
  self_->request(settings_.coordinator, caf::infinite, requests_of(of))
    .then(
      [refused](const proto::CollectiveResponses& y) {
        *refused = error_in(y);
        for (auto& each : y.answers())
          if (!*refused)
            *refused = error_in(each);
      },
      [refused](const caf::error& problem) { *refused = problem; });
  self_->request(settings_.coordinator, caf::infinite, std::move(wait))
    .then([this, keep = shared_from_this(), &of,
           refused](const gpu_sim::GetCommStatusResponse& y) { ended(of, *refused ? *refused : check(of, y)); },
          [this, keep = shared_from_this(), &of, refused](const caf::error& problem) {
            ended(of, *refused ? *refused : problem);
          });
}

caf::error group_calls::check_overdue() const {
  const auto now = self_->clock().now();
  for (auto& [where, each] : lines_)
    if (!each.under_way.empty() && now >= each.due)
      return make_error(errc::timed_out,
                        fmt::format("the coordinator did not say within {} how {} of communicator {} ended",
                                    duration_text(2 * settings_.limit), counted(each.under_way.size(), "operation"),
                                    each.communicator));
  return caf::none;
}

void group_calls::excuse(caf::timespan late) {
  for (auto& [where, each] : lines_)
    each.due += late;
}

proto::CollectiveRequests group_calls::requests_of(const line& of) const {
  proto::CollectiveRequests result;
  for (auto& each : of.under_way) {
    auto& request = *result.add_calls();
    request = each.request;
    request.set_comm_id(of.communicator.value);
    if (of.under_way.size() > 1)
      request.set_answer_may_wait(true); // the limit of the wait applies to all of them
    else
      request.set_timeout_ns(static_cast<uint64_t>(settings_.limit.count()));
  }
  return result;
}

caf::error group_calls::check(const line& of, const gpu_sim::GetCommStatusResponse& x) const {
  if (x.status() == gpu_sim::FAILED)
    return error_from_wire(x.code(), x.error());
  if (x.status() == gpu_sim::IN_PROGRESS)
    return make_error(errc::timed_out, x.error());
  if (static_cast<uint32_t>(x.devices_size()) != of.ranks)
    return make_error(errc::device_lost, fmt::format("the operation ran over {} of {} ranks: {}", x.devices_size(),
                                                     of.ranks, x.asyncerror()));
  return caf::none;
}

void group_calls::ended(line& of, const caf::error& problem) {
  const bool is_gone = problem == caf::sec::request_receiver_down;
  const auto why = is_gone ? make_error(errc::aborted, fmt::format("communicator {} has ended", of.communicator))
                           : problem;
  auto all = std::exchange(of.under_way, {});
  ensure(!all.empty() || static_cast<bool>(problem), "operations that end were under way");
  if (!problem && !ending_)
    start_next(of); // before `done`, which may end all of this
  for (auto& each : all)
    each.done(why);
}

void group_calls::destroy(communicator_id which, uint32_t tries_left, done_function done) {
  proto::CommDestroyRequest request;
  request.set_comm_id(which.value);
  auto answered = [this, keep = shared_from_this(), which, tries_left, done](const caf::error& problem) {
    if (!problem || code_of(problem) == errc::unknown_communicator)
      done(caf::none);
    else if (tries_left > 1)
      destroy(which, tries_left - 1, done);
    else
      done(make_error(errc::timed_out,
                      fmt::format("communicator {} is not known to have ended after {} requests: its streams may still "
                                  "write to the ranks' memory: {}",
                                  which, destroy_tries, render(problem))));
  };
  self_->request(settings_.coordinator, 2 * settings_.limit, request)
    .then([answered](const proto::CommDestroyResponse& x) { answered(error_in(x)); }, answered);
}

void group_calls::end(done_function done) {
  ending_ = true;
  auto left = std::make_shared<size_t>(1);
  auto first = std::make_shared<caf::error>();
  auto one_ended = [left, first, done](const caf::error& problem) {
    ensure(*left > 0, "each communicator ends once");
    if (problem && !*first)
      *first = problem;
    if (--*left == 0)
      done(*first);
  };
  for (auto& [where, each] : lines_)
    if (each.communicator != communicator_id{}) {
      ++*left;
      destroy(each.communicator, destroy_tries, one_ended);
    }
  one_ended(caf::none);
}

} // namespace ringmaster::training
