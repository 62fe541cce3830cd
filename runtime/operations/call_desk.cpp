#include "runtime/operations/call_desk.hpp"

#include "messages/wire_ids.hpp"
#include "runtime/operations/operation.hpp"
#include "runtime/operations/rank_calls.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

namespace ringmaster {

void call_desk::set_ranks(epoch_number epoch, std::vector<device_id> devices) {
  ensure(ranks_.empty() || ranks_.rbegin()->first < epoch, "epochs rise");
  ranks_[epoch] = devices;
  if (ranks_.size() > admission::history_max)
    ranks_.erase(ranks_.begin());
  admission_.set_ranks(epoch, std::move(devices));
}

void call_desk::call(uint64_t ticket, const proto::RankCall& x, bool limited, time_point now) {
  ensure(calls_.count(ticket) == 0, "a ticket is of one call");
  auto& entry = calls_[ticket];
  entry.parts = 1;
  entry.called_at = now;
  entry.device = device_id{x.device_id()};
  ++open_of_[entry.device];
  entry.limited = limited;
  entry.id = x.call();
  if (x.has_call() && is_recovered(ticket, x))
    return;
  if (x.parts().empty())
    return part_ended(ticket, {}); // an empty group
  std::vector<proto::RankCall::Part> parts{x.parts().begin(), x.parts().end()};
  entry.parts = parts.size();
  entry.grouped = parts.size() > 1;
  if (auto problem = admission_.call(ticket, device_id{x.device_id()}, epoch_number{x.epoch()}, std::move(parts))) {
    entry.parts = 1;
    part_ended(ticket, problem);
  }
}

void call_desk::recover(device_id device, call_key call, const std::vector<sequence_number>& in_flight,
                        caf::error error) {
  ensure(calls_.empty(), "calls are recovered before others come");
  recovered_[{device, call}] = {{in_flight.begin(), in_flight.end()}, std::move(error)};
}

bool call_desk::is_recovered(uint64_t ticket, const proto::RankCall& x) {
  const device_id device{x.device_id()};
  const auto known = recovered_.find({device, {x.call().caller(), x.call().number()}});
  if (known == recovered_.end())
    return false;
  calls_.at(ticket).parts = known->second.in_flight.size() + 1; // those that have ended count as one
  for (auto sequence : known->second.in_flight)
    under_way_[sequence].push_back({ticket, device});
  part_ended(ticket, known->second.error);
  return true;
}

std::optional<call_desk::decision> call_desk::next() {
  while (decisions_.empty() && !paused_) {
    const auto found = admission_.next();
    if (!found)
      break;
    ensure(!found->parts.empty(), "a verdict is about calls");
    if (!found->problem) {
      begin(found->parts);
      continue;
    }
    decisions_.emplace_back(refuse{found->problem});
    parts_ended(found->parts, with_context(fmt::format("communicator {}", owner_), found->problem));
  }
  if (decisions_.empty())
    return std::nullopt;
  auto result = std::move(decisions_.front());
  decisions_.pop_front();
  return result;
}

void call_desk::begin(const std::vector<call_part>& parts) {
  ensure(!paused_, "nothing starts while members change");
  if (parts.front().what.split()) {
    begin_split made{{}, parts};
    made.request.set_comm_id(owner_.value);
    for (auto& x : parts) {
      made.request.mutable_split()->add_device_ids(x.device.value);
      made.request.mutable_split()->add_colors(x.what.color());
      made.request.mutable_split()->add_keys(x.what.key());
    }
    decisions_.emplace_back(std::move(made));
    return;
  }
  static const std::vector<device_id> none;
  const auto epoch = parts.front().epoch;
  const auto then = ranks_.find(epoch);
  auto& world = then == ranks_.end() ? none : then->second; // the ranks of the call; some may have been lost since
  std::vector<uint32_t> ranks;
  for (auto& x : parts)
    ranks.push_back(static_cast<uint32_t>(std::find(world.begin(), world.end(), x.device) - world.begin()));
  if (std::count(ranks.begin(), ranks.end(), world.size()) != 0)
    return parts_ended(parts, invalid(fmt::format("not all of the callers had a rank in epoch {}", epoch)));
  auto request = joined(parts, ranks, static_cast<uint32_t>(world.size()));
  request.set_comm_id(owner_.value);
  ensure(request.inputs_size() == static_cast<int>(world.size()), "an operation has an input for each rank");
  auto group = group_of(parts);
  decisions_.emplace_back(begin_operation{std::move(request), parts, group, epoch, origin_of(parts)});
}

proto::CallOrigin call_desk::origin_of(const std::vector<call_part>& parts) const {
  proto::CallOrigin result;
  for (auto& x : parts)
    if (const auto call = calls_.find(x.ticket); call != calls_.end() && call->second.id.caller() != 0) {
      *result.add_ranks() = call->second.id;
      result.add_rank_devices(x.device.value);
    }
  return result;
}

uint64_t call_desk::group_of(const std::vector<call_part>& parts) {
  std::vector<uint64_t> tickets;
  bool grouped = true;
  for (auto& x : parts) {
    tickets.push_back(x.ticket);
    grouped = grouped && calls_.count(x.ticket) != 0 && calls_.at(x.ticket).grouped;
  }
  ensure(!tickets.empty(), "an operation has callers");
  if (!grouped || std::exchange(last_tickets_, tickets) != tickets)
    ++groups_;
  ensure(groups_ > 0 && groups_ < operation::rank_groups, "groups of ranks are numbered after those of the host");
  return operation::rank_groups + groups_;
}

void call_desk::began(sequence_number sequence, const std::vector<call_part>& parts) {
  auto& under_way = under_way_[sequence];
  ensure(under_way.empty(), "an operation begins once");
  ensure(sequence != sequence_number{} && !parts.empty(), "an operation that starts has a number and callers");
  for (auto& x : parts)
    under_way.push_back({x.ticket, x.device});
}

void call_desk::operation_ended(sequence_number sequence, const caf::error& error) {
  for (auto& [call, known] : recovered_)
    if (known.in_flight.erase(sequence) != 0 && error)
      known.error = error;
  if (under_way_.empty())
    return;
  auto ended = under_way_.extract(sequence);
  if (!ended)
    return;
  for (auto& x : ended.mapped()) {
    ensure(x.ticket != 0, "a caller has a ticket");
    const auto lost = error ? caf::error{} : admission_.loss_of(x.device);
    if (lost)
      part_ended(x.ticket, make_error(errc::device_lost, render(lost) + ": the operation has ended without it"));
    else
      part_ended(x.ticket, error);
  }
}

void call_desk::parts_ended(const std::vector<call_part>& parts, const caf::error& error) {
  for (auto& x : parts)
    part_ended(x.ticket, error);
}

std::vector<communicator_id> call_desk::split_made(const proto::CommDeriveResponse& made,
                                                   const std::vector<call_part>& parts) {
  std::vector<communicator_id> unwanted;
  for (auto& part : made.parts()) {
    bool is_wanted = false;
    for (int rank = 0; rank < part.comm().devices_size(); ++rank)
      for (auto& x : parts)
        if (auto call = calls_.find(x.ticket); x.device == id_of(part.comm().devices(rank)) && call != calls_.end()) {
          call->second.answer.set_split_comm_id(part.comm().commid());
          call->second.answer.set_split_rank(static_cast<uint32_t>(rank));
          is_wanted = true;
        }
    if (!is_wanted)
      unwanted.push_back(id_of(part.comm()));
  }
  parts_ended(parts, error_from_wire(made.code(), made.error()));
  return unwanted;
}

void call_desk::part_ended(uint64_t ticket, const caf::error& error) {
  auto i = calls_.find(ticket);
  if (i == calls_.end())
    return;
  ensure(i->second.parts > 0, "a call ends with the last of its parts");
  auto& answer = i->second.answer;
  if (error && answer.code() == 0)
    answer.set_code(wire_code(error));
  if (const auto text = error ? render(error) : std::string{}; answer.error() != text && !text.empty())
    answer.set_error(answer.error().empty() ? text : answer.error() + "; " + text);
  if (--i->second.parts > 0)
    return;
  answer.set_success(answer.code() == 0);
  decisions_.emplace_back(answer_call{ticket, std::move(answer)});
  const auto its = open_of_.find(i->second.device);
  ensure(its != open_of_.end() && its->second > 0, "open calls are counted for each device");
  if (--its->second == 0)
    open_of_.erase(its);
  calls_.erase(i);
  ensure(open_of_.size() <= calls_.size(), "open calls are counted for each device");
}

call_desk::expiry call_desk::expire(uint64_t ticket, sequence_number next_sequence, const std::string& last_ended,
                                    time_point now) {
  ensure(calls_.count(ticket) != 0, "only a call that is open expires");
  auto& entry = calls_.at(ticket);
  ensure(entry.called_at <= now, "time does not run backwards");
  expiry result;
  result.waited = fmt::format("{:.1f} s", std::chrono::duration<double>{now - entry.called_at}.count());
  auto is_it = [&](auto& x) { return x.ticket == ticket; };
  for (auto& [sequence, under_way] : under_way_)
    if (entry.limited && std::any_of(under_way.begin(), under_way.end(), is_it))
      result.late.push_back(sequence);
  if (!admission_.waits_for(ticket, next_sequence).empty())
    admission_.give_up_late(ticket, next_sequence, fmt::format("{}; waiting for {}", last_ended, result.waited));
  return result;
}

std::vector<call_desk::waiting_call> call_desk::waiting(sequence_number next_sequence, time_point now) const {
  constexpr size_t looked_at_max = 8; // each is compared with the calls of all ranks
  std::vector<waiting_call> result;
  size_t looked_at = 0;
  for (auto& [ticket, call] : calls_) { // tickets rise: the oldest first
    ensure(call.called_at <= now, "time does not run backwards");
    auto text = admission_.waits_for(ticket, next_sequence);
    if (text.empty())
      continue; // its operation runs
    if (std::none_of(result.begin(), result.end(), [&](auto& x) { return x.waits_for == text; }))
      result.push_back({std::move(text), now - call.called_at});
    if (++looked_at == looked_at_max)
      break;
  }
  return result;
}

void call_desk::fail_all(const caf::error& error) {
  ensure(static_cast<bool>(error), "calls fail for a reason");
  admission_.give_up_all(error);
  while (auto found = admission_.next())
    parts_ended(found->parts, found->problem);
  std::set<uint64_t> splits;
  for (auto& call : calls_)
    splits.insert(call.first);
  for (auto& [sequence, under_way] : under_way_) // these end as operations
    for (auto& x : under_way)
      splits.erase(x.ticket);
  for (auto ticket : splits)
    while (calls_.count(ticket) != 0)
      part_ended(ticket, error);
  ensure(calls_.empty() || !under_way_.empty(), "after the end only calls of operations under way are open");
}

} // namespace ringmaster
