#include "runtime/operations/admission.hpp"

#include "runtime/operations/rank_calls.hpp"
#include "runtime/schedule/collective.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster {

namespace {

bool is_transfer(const proto::RankCall::Part& x) {
  return !x.split() && x.collective().kind() == proto::SEND_RECV;
}

} // namespace

std::optional<uint32_t> admission::rank_of(device_id device) const {
  auto i = std::find(ranks_.begin(), ranks_.end(), device);
  return i == ranks_.end() ? std::nullopt : std::optional{static_cast<uint32_t>(i - ranks_.begin())};
}

device_id admission::device_of(epoch_number epoch, uint32_t rank) const {
  auto then = history_.find(epoch);
  if (then == history_.end() || rank >= then->second.size())
    return {};
  auto device = then->second[rank];
  size_t steps = 0;
  for (auto i = replaced_by_.find(device); i != replaced_by_.end(); i = replaced_by_.find(device)) {
    device = i->second;
    ensure(++steps <= replaced_by_.size(), "replacements form no circle");
  }
  return is_member(device) ? device : device_id{};
}

caf::error admission::loss_of(device_id device) const {
  return is_member(device) ? caf::error{} : make_error(errc::device_lost, name_of_rank(device) + " was lost");
}

std::string admission::name_of_rank(device_id device) const {
  auto rank = rank_of(device);
  auto named = names_.find(device);
  auto name = named == names_.end() ? fmt::format("device 0x{:x}", device) : named->second;
  return rank ? fmt::format("rank {} ({})", *rank, name) : name;
}

void admission::set_ranks(epoch_number epoch, std::vector<device_id> devices) {
  ensure(history_.empty() || history_.rbegin()->first < epoch, "epochs rise");
  ensure(std::set<device_id>(devices.begin(), devices.end()).size() == devices.size(), "a device has one rank");
  ensure(std::none_of(devices.begin(), devices.end(), [](auto x) { return x == device_id{}; }), "a rank has a device");
  auto before = std::exchange(ranks_, std::move(devices));
  for (size_t rank = 0; before.size() == ranks_.size() && rank < ranks_.size(); ++rank)
    if (before[rank] != ranks_[rank]) {
      ensure(replaced_by_.count(ranks_[rank]) == 0, "a device that was lost does not come back");
      replaced_by_[before[rank]] = ranks_[rank];
      called_[{ranks_[rank], key{}}] = collectives_;
    }
  history_[epoch] = ranks_;
  if (history_.size() > history_max)
    history_.erase(history_.begin());
  for (auto device : before) {
    if (is_member(device))
      continue;
    const auto why = make_error(errc::device_lost, fmt::format("device 0x{:x} was lost", device));
    auto calls = queues_.find(device);
    if (calls != queues_.end()) {
      for (auto& call : calls->second)
        for (auto& x : call.open)
          verdicts_.push_back({{x.part}, why});
      queues_.erase(calls);
    }
    std::vector<key> with_it;
    for (auto& [other, queue] : queues_)
      for (auto& call : queue)
        for (auto& x : call.open)
          if (x.where.from == device || x.where.to == device)
            with_it.push_back(x.where);
    for (auto& where : with_it)
      fail(where, why);
    for (auto& [where, failed] : failed_)
      failed.owed.erase(device);
  }
  ensure(queues_.size() <= ranks_.size(), "only members have open calls");
  std::erase_if(failed_, [](auto& x) { return x.second.owed.empty(); });
  std::erase_if(called_, [&](auto& x) {
    auto& [device, channel] = x.first;
    return !is_member(device) || (channel.from != device_id{} && (!is_member(channel.from) || !is_member(channel.to)));
  });
}

admission::key admission::next_key(const call_part& part) {
  key channel;
  if (is_transfer(part.what)) {
    auto peer = device_of(part.epoch, part.what.collective().peer());
    channel = part.what.receives() ? key{peer, part.device, 0} : key{part.device, peer, 0};
  }
  ensure(is_member(part.device), "only members' calls are counted");
  auto result = channel;
  result.index = called_[{part.device, channel}]++;
  return result;
}

caf::error admission::call(uint64_t ticket, device_id device, epoch_number epoch,
                           std::vector<proto::RankCall::Part> parts) {
  if (!is_member(device))
    return make_error(errc::unknown_device,
                      fmt::format("device 0x{:x} has no rank in this communicator; its ranks are devices 0x{:x}",
                                  device, fmt::join(ranks_, ", 0x")));
  ensure(!parts.empty(), "a call has parts");
  ensure(!history_.empty(), "calls come after the first epoch opens");
  auto then = history_.find(epoch);
  entry added{ticket, {}};
  for (auto& x : parts) {
    call_part part{ticket, device, epoch, std::move(x)};
    bool transfer = is_transfer(part.what);
    auto peer = transfer ? device_of(epoch, part.what.collective().peer()) : device_id{};
    if (transfer && (peer == device_id{} || peer == device)) {
      auto why = peer == device           ? "a rank cannot send to itself; copy within the device instead"
                 : then == history_.end() ? fmt::format("epoch {} is not known", epoch)
                 : part.what.collective().peer() < then->second.size()
                   ? fmt::format("device 0x{:x} was lost", then->second[part.what.collective().peer()])
                   : fmt::format("there are ranks 0 to {}", then->second.size() - 1);
      verdicts_.push_back({{part}, invalid(fmt::format("{}: {}", name_of(part.what), why))});
      continue;
    }
    auto where = next_key(part);
    if (auto failed = failed_.find(where); failed != failed_.end()) {
      verdicts_.push_back({{part}, failed->second.why});
      failed->second.owed.erase(device);
      if (failed->second.owed.empty())
        failed_.erase(failed);
      continue;
    }
    added.open.push_back({where, std::move(part)});
  }
  std::vector<key> unknown;
  for (auto& x : added.open)
    if (then == history_.end())
      unknown.push_back(x.where);
  if (!added.open.empty()) {
    ensure(queues_.count(device) == 0 || queues_[device].back().ticket < ticket, "tickets rise");
    queues_[device].push_back(std::move(added));
  }
  for (auto& where : unknown)
    fail(where,
         invalid(fmt::format("{} calls for epoch {}, and the communicator is in epoch {}: update() says its ranks",
                             name_of_rank(device), epoch, history_.rbegin()->first)));
  return {};
}

std::optional<admission::verdict> admission::next() {
  if (verdicts_.empty() && !match_transfer() && !match_collective())
    find_standstill();
  if (verdicts_.empty())
    return std::nullopt;
  auto result = std::move(verdicts_.front());
  verdicts_.pop_front();
  ensure(!result.parts.empty(), "a verdict is about calls");
  return result;
}

const admission::open_part* admission::front(device_id device, const key& where) const {
  auto queue = queues_.find(device);
  if (queue == queues_.end())
    return nullptr;
  ensure(!queue->second.empty() && !queue->second.front().open.empty(), "no queue and no call in it is empty");
  auto& open = queue->second.front().open;
  auto i = std::find_if(open.begin(), open.end(), [&](auto& x) { return x.where == where; });
  return i == open.end() ? nullptr : &*i;
}

std::optional<call_part> admission::take(device_id device, const key& where) {
  auto queue = queues_.find(device);
  if (queue == queues_.end())
    return std::nullopt;
  for (auto call = queue->second.begin(); call != queue->second.end(); ++call)
    for (auto x = call->open.begin(); x != call->open.end(); ++x)
      if (x->where == where) {
        auto result = std::move(x->part);
        call->open.erase(x);
        if (call->open.empty())
          queue->second.erase(call);
        if (queue->second.empty())
          queues_.erase(queue);
        return result;
      }
  return std::nullopt;
}

bool admission::match_transfer() {
  for (auto& [device, queue] : queues_)
    for (auto& x : queue.front().open) {
      auto where = x.where;
      if (where.from != device || front(where.to, where) == nullptr)
        continue;
      std::vector<call_part> parts;
      ensure(where.from != where.to, "a rank does not send to itself");
      for (auto end : {where.from, where.to})
        parts.push_back(*take(end, where));
      judge(std::move(parts));
      return true;
    }
  return false;
}

bool admission::match_collective() {
  std::vector<key> first;
  for (auto device : ranks_) {
    auto queue = queues_.find(device);
    if (queue == queues_.end())
      return false;
    auto& open = queue->second.front().open;
    auto x = std::find_if(open.begin(), open.end(), [](auto& y) { return y.where.from == device_id{}; });
    if (x == open.end() || (!first.empty() && x->where != first.front()))
      return false;
    first.push_back(x->where);
  }
  if (first.empty())
    return false;
  ensure(first.size() == ranks_.size(), "a collective matches when every rank has called it");
  ensure(first.front().index >= collectives_, "collectives match in the order of their calls");
  ensure(failed_.count(first.front()) == 0, "a collective that has failed does not match");
  std::vector<call_part> parts;
  for (auto device : ranks_)
    parts.push_back(*take(device, first.front()));
  collectives_ = first.front().index + 1;
  judge(std::move(parts));
  return true;
}

void admission::judge(std::vector<call_part> parts) {
  ensure(!parts.empty(), "what is judged has parts");
  std::vector<uint32_t> ranks;
  for (auto& x : parts) {
    const auto rank = rank_of(x.device);
    ensure(rank.has_value(), "only members' calls match");
    ranks.push_back(*rank);
  }
  const auto difference = difference_of(parts, ranks);
  caf::error problem;
  if (difference) {
    const bool same = std::all_of(parts.begin(), parts.end(),
                                  [&](auto& x) { return name_of(x.what) == name_of(parts.front().what); });
    problem = invalid(fmt::format("{}the ranks' calls do not match, and nothing has been moved: {}",
                                  same ? name_of(parts.front().what) + ": " : "", *difference));
  }
  verdicts_.push_back({std::move(parts), std::move(problem)});
}

bool admission::find_standstill() {
  if (ranks_.empty() || queues_.size() < ranks_.size())
    return false;
  std::vector<std::string> texts;
  std::vector<key> stuck;
  for (auto device : ranks_) {
    auto& open = queues_.at(device).front().open;
    texts.push_back(fmt::format("rank {} called {}", *rank_of(device), text_of(open.front())));
    for (auto& x : open)
      stuck.push_back(x.where);
  }
  const auto why = invalid(
    fmt::format("the ranks' calls do not match, and nothing has been moved: each waits for one that can never come: {}",
                fmt::join(texts, ", ")));
  for (auto& where : stuck)
    fail(where, why);
  return true;
}

void admission::fail(const key& where, const caf::error& why) {
  ensure(static_cast<bool>(why), "a call fails for a reason");
  failure failed{why, {}};
  verdict out{{}, why};
  auto ends = where.from == device_id{} ? ranks_ : std::vector<device_id>{where.from, where.to};
  for (auto device : ends)
    if (auto part = take(device, where))
      out.parts.push_back(std::move(*part));
    else if (is_member(device) && called_[{device, key{where.from, where.to, 0}}] <= where.index)
      failed.owed.insert(device);
  if (!out.parts.empty())
    verdicts_.push_back(std::move(out));
  if (!failed.owed.empty()) {
    const bool is_new = failed_.emplace(where, std::move(failed)).second;
    ensure(is_new, "an operation fails once");
  }
  ensure(std::none_of(ends.begin(), ends.end(), [&](auto x) { return front(x, where) != nullptr; }),
         "after a failure no rank waits with the call");
  if (where.from == device_id{})
    collectives_ = std::max(collectives_, where.index + 1);
}

void admission::give_up(uint64_t ticket, const caf::error& why) {
  std::vector<key> open;
  for (auto& [device, queue] : queues_)
    for (auto& call : queue)
      if (call.ticket == ticket)
        for (auto& x : call.open)
          open.push_back(x.where);
  for (auto& where : open)
    fail(where, why);
  ensure(open.empty() || !verdicts_.empty(), "a call that is given up has a verdict");
}

void admission::give_up_all(const caf::error& why) {
  while (!queues_.empty()) {
    const auto where = queues_.begin()->second.front().open.front().where; // `fail` removes the part, or its queue
    fail(where, why);
  }
  ensure(queues_.empty(), "after the end no call is open");
}

std::string admission::text_of(const open_part& x) const {
  return name_of(x.part.what);
}

std::map<device_id, std::string> admission::waiting(sequence_number number) const {
  std::map<device_id, std::string> result;
  for (auto& [device, queue] : queues_)
    result[device] = fmt::format("{} #{}", text_of(queue.front().open.front()), number);
  return result;
}

std::string admission::waits_for(uint64_t ticket, sequence_number number) const {
  for (auto& [device, queue] : queues_)
    for (auto call = queue.begin(); call != queue.end(); ++call) {
      if (call->ticket != ticket)
        continue;
      auto& x = call->open.front();
      for (auto before = queue.begin(); before != call; ++before)
        number.value += before->open.size();
      std::vector<std::string> missing, blocked; // calls after another one wait for the same ranks
      auto others = x.where.from == device_id{} ? ranks_ : std::vector<device_id>{x.where.from, x.where.to};
      for (auto other : others) {
        auto has = called_.find({other, key{x.where.from, x.where.to, 0}});
        bool has_called = has != called_.end() && has->second > x.where.index;
        auto what = x.where.from == device_id{} ? name_of(x.part.what)
                    : x.part.what.receives()    ? fmt::format("send to rank {}", *rank_of(device))
                                                : fmt::format("receive from rank {}", *rank_of(device));
        if (!has_called)
          missing.push_back(fmt::format("{} has not called {} #{}{}", name_of_rank(other), what, number,
                                        elsewhere_ ? elsewhere_(other) : ""));
        else if (other != device && front(other, x.where) == nullptr)
          blocked.push_back(fmt::format("{} has called {} before it, which still waits", name_of_rank(other),
                                        text_of(queues_.at(other).front().open.front())));
      }
      if (missing.empty())
        missing = std::move(blocked);
      if (missing.empty() && call != queue.begin())
        missing.push_back(fmt::format("its own call of {} still waits", text_of(queue.front().open.front())));
      return fmt::format("{}", fmt::join(missing, ", "));
    }
  return {};
}

} // namespace ringmaster
