// A COMMUNICATOR's ranks call for themselves: each tells its part, and when all parts of an operation are there and
// match, it is enqueued as if the host had called it.
#include "actors/communicators/communicator.hpp"

#include "actors/calls/request_limit.hpp"
#include "runtime/schedule/collective.hpp"
#include "runtime/operations/rank_calls.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

/// The groups of ranks' calls are numbered behind those of the host.
constexpr uint64_t rank_group_base = uint64_t{1} << 63;

void communicator_state::call(proto::RankCall x, rank_call_promise promise) {
  bool limited = x.timeout_ns() != 0;
  auto ticket = limit(limited ? request_limit(x.timeout_ns()) : options.operation_limit);
  auto& entry = calls_[ticket];
  entry.promise = std::move(promise);
  entry.parts = 1;
  entry.called_at = self->clock().now();
  entry.limited = limited;
  if (state == phase::aborted || state == phase::ending)
    return part_ended(ticket, async_error_);
  if (x.parts().empty())
    return part_ended(ticket, {}); // an empty group
  std::vector<proto::RankCall::Part> parts{x.parts().begin(), x.parts().end()};
  entry.parts = parts.size();
  entry.grouped = parts.size() > 1;
  auto problem = admission_.call(ticket, x.device_id(), x.epoch(), std::move(parts));
  if (!problem.empty()) {
    entry.parts = 1;
    return part_ended(ticket, problem);
  }
  serve_calls();
}

void communicator_state::serve_calls() {
  while (state == phase::active) { // else ranks are not what they will be in a moment
    auto found = admission_.next();
    if (!found)
      return;
    if (found->problem.empty()) {
      begin_parts(*found);
      continue;
    }
    proto::Record record;
    record.mutable_calls_refused()->set_comm_id(options.id.value);
    record.mutable_calls_refused()->set_reason(found->problem);
    journal(std::move(record));
    parts_ended(found->parts, found->problem);
  }
}

void communicator_state::begin_parts(const admission::verdict& matched) {
  auto& parts = matched.parts;
  if (parts.front().what.split())
    return begin_split(parts);
  static const std::vector<gpu_sim::DeviceMetadata> nobody;
  auto then = history_.find(parts.front().epoch);
  auto& world = then == history_.end() ? nobody : then->second; // the ranks that the call is about; some may be lost since
  std::vector<uint32_t> ranks;
  for (auto& x : parts)
    ranks.push_back(static_cast<uint32_t>(
      std::find_if(world.begin(), world.end(), [&](auto& y) { return y.deviceid().value() == x.device; }) - world.begin()));
  if (std::count(ranks.begin(), ranks.end(), world.size()) != 0)
    return parts_ended(parts, fmt::format("not all of the callers had a rank in epoch {}", parts.front().epoch));
  auto request = joined(parts, ranks, static_cast<uint32_t>(world.size()));
  request.set_comm_id(options.id.value);
  auto sequence = enqueue(request, {.rank_group = group_of(parts), .epoch = parts.front().epoch});
  if (!sequence)
    return parts_ended(parts, fmt::format("{}: {}", name_of(parts.front().what), render(sequence.error())));
  auto& tickets = called_operations_[*sequence];
  for (auto& x : parts)
    tickets.push_back(x.ticket);
}

uint64_t communicator_state::group_of(const std::vector<call_part>& parts) {
  std::vector<uint64_t> tickets;
  bool grouped = true;
  for (auto& x : parts) {
    tickets.push_back(x.ticket);
    grouped = grouped && calls_.count(x.ticket) != 0 && calls_.at(x.ticket).grouped;
  }
  if (!grouped || std::exchange(last_tickets_, tickets) != tickets)
    ++rank_groups_;
  return rank_group_base + rank_groups_;
}

void communicator_state::destroy(uint64_t comm_id) {
  proto::CommDestroyRequest request;
  request.set_comm_id(comm_id);
  caf::anon_send(options.coordinator, std::move(request));
}

bool communicator_state::hand_over(const gpu_sim::CommInitResponse& made, const std::vector<call_part>& parts) {
  bool anybody = false;
  for (int rank = 0; rank < made.devices_size(); ++rank)
    for (auto& x : parts)
      if (auto call = calls_.find(x.ticket);
          x.device == made.devices(rank).deviceid().value() && call != calls_.end()) {
        call->second.answer.set_split_comm_id(made.commid());
        call->second.answer.set_split_rank(static_cast<uint32_t>(rank));
        anybody = true;
      }
  return anybody;
}

void communicator_state::begin_split(const std::vector<call_part>& parts) {
  proto::CommDeriveRequest request;
  request.set_comm_id(options.id.value);
  for (auto& x : parts) {
    request.mutable_split()->add_device_ids(x.device);
    request.mutable_split()->add_colors(x.what.color());
    request.mutable_split()->add_keys(x.what.key());
  }
  auto fail = [this, parts](const std::string& why) { parts_ended(parts, "split: " + why); };
  if (!options.coordinator)
    return fail("there is no coordinator");
  ++splits_;
  self->request(options.coordinator, options.operation_limit, std::move(request))
    .then(
      [this, parts](const proto::CommDeriveResponse& made) {
        for (auto& part : made.parts())
          if (!hand_over(part.comm(), parts))
            destroy(part.comm().commid());
        parts_ended(parts, made.error());
        --splits_;
        finish_ending();
      },
      [this, fail](const caf::error& problem) {
        fail("the coordinator did not answer, and may have made the parts: " + render(problem));
        --splits_;
        finish_ending();
      });
}

void communicator_state::parts_ended(const std::vector<call_part>& parts, const std::string& error) {
  for (auto& x : parts)
    part_ended(x.ticket, error);
}

void communicator_state::part_ended(uint64_t ticket, const std::string& error) {
  auto i = calls_.find(ticket);
  if (i == calls_.end())
    return;
  auto& answer = i->second.answer;
  if (!error.empty() && answer.error() != error)
    answer.set_error(answer.error().empty() ? error : answer.error() + "; " + error);
  if (--i->second.parts > 0)
    return;
  answer.set_success(answer.error().empty());
  answer.set_epoch(epoch);
  auto promise = std::move(i->second.promise);
  auto final_answer = std::move(answer);
  calls_.erase(i);
  limits_.remove(ticket);
  flush_records(); // whoever is answered may ask the journal
  promise.deliver(std::move(final_answer));
}

void communicator_state::called_operation_ended(uint64_t sequence, const std::string& error) {
  if (called_operations_.empty())
    return;
  auto tickets = called_operations_.extract(sequence);
  if (tickets)
    for (auto ticket : tickets.mapped())
      part_ended(ticket, error);
}

void communicator_state::call_expired(uint64_t ticket) {
  auto& entry = calls_.at(ticket);
  auto waited = std::chrono::duration<double>{self->clock().now() - entry.called_at}.count();
  bool limited = entry.limited;
  std::vector<uint64_t> late;
  for (auto& [sequence, tickets] : called_operations_)
    if (limited && std::count(tickets.begin(), tickets.end(), ticket) != 0)
      late.push_back(sequence);
  if (auto missing = admission_.waits_for(ticket, sequences_ + 1); !missing.empty()) {
    auto last = last_ended_ == 0 ? std::string{"no operation has ended yet"}
                                 : fmt::format("it last finished {} #{}", name_of(last_kind_), last_ended_);
    admission_.give_up(ticket, fmt::format("{}; {}; waiting since {:.1f} s", missing, last, waited));
    serve_calls();
  }
  end_late(late, fmt::format("{:.1f} s", waited));
}

void communicator_state::fail_calls() {
  std::vector<uint64_t> tickets;
  for (auto& call : calls_)
    tickets.push_back(call.first);
  for (auto ticket : tickets)
    admission_.give_up(ticket, async_error_);
  while (auto found = admission_.next())
    parts_ended(found->parts, found->problem);
  for (auto& [sequence, under_way] : called_operations_) // these end as operations
    for (auto ticket : under_way)
      std::erase(tickets, ticket);
  for (auto ticket : tickets) // splits
    while (calls_.count(ticket) != 0)
      part_ended(ticket, async_error_);
}

} // namespace ringmaster
