#include "runtime/operations/admission.hpp"

#include "runtime/health/verdict_text.hpp"
#include "runtime/operations/rank_calls.hpp"
#include "runtime/schedule/collective.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <ranges>

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
  return is_member(device) ? caf::error{}
                           : make_error(errc::device_lost, name_of_rank(device) + " was lost" + loss_text(device));
}

std::string admission::loss_text(device_id device) const {
  const auto why = losses_ ? losses_(device) : std::string{};
  return why.empty() ? why : ": " + why;
}

caf::error admission::error_of(errc code, proto::Verdict found) const {
  return judge_ ? judge_(code, std::move(found)) : make_error(code, finding_of(found));
}

void admission::add_culprits(proto::Verdict& to, const std::vector<device_id>& devices) const {
  for (auto device : devices) {
    auto& culprit = *to.add_culprits();
    culprit.set_device_id(device.value);
    culprit.set_rank(rank_of(device).value_or(0));
  }
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
    const auto why = make_error(errc::device_lost, fmt::format("device 0x{:x} was lost{}", device, loss_text(device)));
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
                   ? fmt::format("device 0x{:x} was lost{}", then->second[part.what.collective().peer()],
                                 loss_text(then->second[part.what.collective().peer()]))
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
    const auto odd = odd_ones_of(parts);
    proto::Verdict found;
    found.set_kind(proto::Verdict::CALLED_ELSE);
    found.set_evidence(fmt::format("{}the ranks' calls do not match, and nothing has been moved: {}",
                                   same ? name_of(parts.front().what) + ": " : "", *difference));
    std::vector<device_id> devices;
    for (size_t i = 0; i < parts.size(); ++i)
      if (std::ranges::find(odd, i) != odd.end())
        devices.push_back(parts[i].device);
      else
        found.set_operation(name_of(parts[i].what)); // as most have called
    add_culprits(found, devices);
    for (size_t i = 0; i < odd.size(); ++i)
      found.mutable_culprits(static_cast<int>(i))->set_call(name_of(parts[odd[i]].what));
    problem = error_of(errc::invalid_argument, std::move(found));
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
  proto::Verdict found;
  found.set_kind(proto::Verdict::CALLED_ELSE);
  found.set_evidence(
    fmt::format("the ranks' calls do not match, and nothing has been moved: each waits for one that can never come: {}",
                fmt::join(texts, ", ")));
  add_culprits(found, odd_ones());
  for (auto& x : *found.mutable_culprits())
    x.set_call(text_of(queues_.at(device_id{x.device_id()}).front().open.front()));
  const auto why = error_of(errc::invalid_argument, std::move(found));
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

std::vector<device_id> admission::odd_ones() const {
  std::map<key, std::vector<device_id>> alike; // by what they wait with
  for (auto device : ranks_)
    alike[queues_.at(device).front().open.front().where].push_back(device);
  size_t most = 0;
  for (auto& [where, devices] : alike)
    most = std::max(most, devices.size());
  const bool is_tie = std::ranges::count_if(alike, [=](auto& x) { return x.second.size() == most; }) > 1;
  std::vector<device_id> result;
  for (auto device : ranks_)
    if (is_tie || alike.at(queues_.at(device).front().open.front().where).size() < most)
      result.push_back(device);
  return result;
}

admission::obstacle admission::obstacle_of(device_id device, const entry& call, sequence_number number) const {
  auto& queue = queues_.at(device);
  auto& x = call.open.front();
  obstacle result;
  result.what = x.where.from == device_id{} ? name_of(x.part.what)
                : x.part.what.receives()    ? fmt::format("send to rank {}", *rank_of(device))
                                            : fmt::format("receive from rank {}", *rank_of(device));
  result.after_own_call = &call != &queue.front();
  for (auto& before : queue) {
    if (&before == &call)
      break;
    number.value += before.open.size();
  }
  result.number = number;
  const auto others = x.where.from == device_id{} ? ranks_ : std::vector<device_id>{x.where.from, x.where.to};
  for (auto other : others) {
    const auto has = called_.find({other, key{x.where.from, x.where.to, 0}});
    if (has == called_.end() || has->second <= x.where.index)
      result.missing.push_back(other);
    else if (other != device && front(other, x.where) == nullptr)
      result.blocked.push_back(other);
  }
  return result;
}

std::string admission::text_of(const obstacle& x) const {
  std::vector<std::string> result;
  for (auto device : x.missing)
    result.push_back(fmt::format("{} has not called {} #{}{}", name_of_rank(device), x.what, x.number,
                                 elsewhere_ ? elsewhere_(device) : ""));
  if (result.empty()) // calls after another one wait for the same ranks
    for (auto device : x.blocked)
      result.push_back(fmt::format("{} has called {} before it, which still waits", name_of_rank(device),
                                   text_of(queues_.at(device).front().open.front())));
  return fmt::format("{}", fmt::join(result, ", "));
}

std::string admission::waits_for(uint64_t ticket, sequence_number number) const {
  for (auto& [device, queue] : queues_)
    for (auto& call : queue)
      if (call.ticket == ticket) {
        const auto found = obstacle_of(device, call, number);
        const bool is_own = found.missing.empty() && found.blocked.empty() && found.after_own_call;
        return is_own ? fmt::format("its own call of {} still waits", text_of(queue.front().open.front()))
                      : text_of(found);
      }
  return {};
}

double admission::support_of(device_id device, const entry& call) const {
  const auto missing = obstacle_of(device, call, {}).missing.size();
  const auto is_collective = call.open.front().where.from == device_id{};
  const auto others = is_collective ? ranks_.size() - 1 : 1;
  return static_cast<double>(others - missing + 1) / static_cast<double>(others + 1);
}

admission::root admission::root_of(device_id device, const entry& call, sequence_number number) const {
  std::map<device_id, const entry*> seen{{device, &call}};
  std::deque<device_id> to_see{device};
  std::vector<device_id> in_circle; // they wait for the first one
  root result;
  while (!to_see.empty()) {
    const auto at = to_see.front();
    to_see.pop_front();
    const auto found = obstacle_of(at, *seen.at(at), number);
    auto others = found.missing;
    others.insert(others.end(), found.blocked.begin(), found.blocked.end());
    if (found.after_own_call && at == device && &call != &queues_.at(at).front())
      return root_of(at, queues_.at(at).front(), number);
    for (auto other : others) {
      const auto queue = queues_.find(other);
      if (other == device)
        in_circle.push_back(at);
      else if (queue != queues_.end() && seen.emplace(other, &queue->second.front()).second)
        to_see.push_back(other);
      else if (queue == queues_.end() && std::ranges::find(result.culprits, other) == result.culprits.end()) {
        result.kind = proto::Verdict::NEVER_CALLED;
        result.culprits.push_back(other);
        result.what = found.what;
        result.number = found.number;
      }
    }
  }
  if (in_circle.empty())
    return result;
  // None of them can go on: the one whose call the fewest others have made called something else.
  in_circle.push_back(device);
  const auto least = std::ranges::min(in_circle
                                      | std::views::transform([&](auto x) { return support_of(x, *seen.at(x)); }));
  result = {proto::Verdict::CALLED_ELSE, {}, number, {}, in_circle};
  for (auto x : in_circle)
    if (support_of(x, *seen.at(x)) == least)
      result.culprits.push_back(x);
    else
      result.what = text_of(seen.at(x)->open.front());
  return result;
}

proto::Verdict admission::waits_in_calls(sequence_number number) const {
  proto::Verdict result;
  for (auto device : ranks_) {
    const auto queue = queues_.find(device);
    if (queue == queues_.end())
      continue;
    const auto found = obstacle_of(device, queue->second.front(), number);
    auto& wait = *result.add_waits();
    wait.set_rank(*rank_of(device));
    wait.set_what(text_of(queue->second.front().open.front()));
    for (auto other : found.missing.empty() ? found.blocked : found.missing)
      if (const auto rank = rank_of(other))
        wait.add_waits_for(*rank);
    result.set_sequence(number.value);
    result.set_operation(wait.what());
  }
  return result;
}

void admission::give_up_late(uint64_t ticket, sequence_number number, const std::string& evidence) {
  for (auto& [device, queue] : queues_)
    for (auto& call : queue) {
      if (call.ticket != ticket)
        continue;
      const auto waits = waits_for(ticket, number);
      const auto cause = root_of(device, call, number);
      auto found = waits_in_calls(number);
      found.set_kind(cause.kind);
      found.set_evidence(fmt::format("{}; {}", waits, evidence));
      add_culprits(found, cause.culprits);
      if (!cause.culprits.empty()) {
        found.set_sequence(cause.number.value);
        found.set_operation(cause.what);
      }
      std::set<uint64_t> given_up{ticket};
      for (auto x : cause.circle)
        given_up.insert(queues_.at(x).front().ticket);
      for (auto& x : *found.mutable_culprits()) {
        const device_id culprit{x.device_id()};
        const auto its = queues_.find(culprit);
        x.set_call(its != queues_.end() ? text_of(its->second.front().open.front())
                   : elsewhere_         ? elsewhere_(culprit)
                                        : "");
      }
      const auto direct = obstacle_of(device, call, number);
      if (cause.kind == proto::Verdict::NEVER_CALLED && direct.missing == cause.culprits)
        found.set_evidence(evidence); // the finding says what is missing
      const auto why = error_of(errc::timed_out, std::move(found));
      for (auto each : given_up)
        give_up(each, why);
      return;
    }
}

} // namespace ringmaster
