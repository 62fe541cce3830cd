#include "tests/programs/soak_work.hpp"

#include "runtime/algorithms/registry.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <fmt/format.h>
#include <iterator>

namespace ringmaster::soak {

namespace {

using std::chrono::duration;
using std::chrono::seconds;
using group = test::collective_expectation::group;
using call_kind = test::client_call::kind;
using call_outcome = test::client_call::outcome;

test::client_call::group devices_of(const group& x) {
  test::client_call::group result;
  for (auto& holder : x)
    result.push_back(holder.device);
  std::ranges::sort(result);
  return result;
}

test::client_call::group devices_of(const gpu_sim::GetCommStatusResponse& x) {
  test::client_call::group result;
  for (auto& device : x.devices())
    result.push_back(id_of(device).value);
  std::ranges::sort(result);
  return result;
}

/// Numbers, which differ from refusal to refusal, as #.
std::string without_numbers(const std::string& text) {
  std::string result;
  bool in_hexadecimal = false;
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    in_hexadecimal = (in_hexadecimal && std::isxdigit(c) != 0) || (c == 'x' && i > 0 && text[i - 1] == '0');
    if (std::isdigit(c) == 0 && !in_hexadecimal)
      result += text[i];
    else if (result.empty() || result.back() != '#')
      result += '#';
  }
  return result.substr(0, 90);
}

bool has(const gpu_sim::GetCommStatusResponse& x, device_id device) {
  return std::any_of(x.devices().begin(), x.devices().end(), [&](auto& y) { return id_of(y) == device; });
}

/// Who may have ended an operation that was called over some and after which others are there: those, and any of the
/// lost, which may have been lost after it. Under "abort" no smaller group runs anything.
std::vector<group> possible_groups(const gpu_sim::GetCommStatusResponse& now,
                                   const gpu_sim::GetCommStatusResponse& then, proto::FailurePolicy policy) {
  if (policy == proto::REPLACE && now.devices_size() == then.devices_size()) {
    group all;
    for (int rank = 0; rank < now.devices_size(); ++rank)
      all.push_back({static_cast<uint32_t>(rank), id_of(now.devices(rank)).value,
                     id_of(now.devices(rank)) != id_of(then.devices(rank))});
    return {all};
  }
  std::vector<group> result{{}};
  for (int rank = 0; rank < then.devices_size(); ++rank) {
    auto device = id_of(then.devices(rank));
    if (policy == proto::ABORT) {
      result.front().push_back({static_cast<uint32_t>(rank), device.value, false});
      continue;
    }
    auto with_it = result;
    for (auto& x : with_it)
      x.push_back({static_cast<uint32_t>(rank), device.value, false});
    if (has(now, device))
      result = std::move(with_it);
    else
      result.insert(result.end(), with_it.begin(), with_it.end());
  }
  return result;
}

} // namespace

template <class Call>
auto soak_work::timed(Call call) {
  constexpr double limit_s = 95; // a wait of 60 s, and the client's own limit, even if processes are stopped
  auto begun = steady::now();
  auto answer = call();
  auto took = duration<double>{steady::now() - begun}.count();
  result_.longest_s = std::max(result_.longest_s, took);
  result_.hung += took > limit_s ? 1 : 0;
  return answer;
}

void soak_work::round() {
  auto there = timed([&] { return host().devices(2, seconds{20}); });
  if (!there) {
    result_.reconnects += connection_.renew(there.error()) ? 1 : 0;
    return refuse(there.error());
  }
  auto ranks = std::min(there->devices_size(), 8);
  constexpr proto::FailurePolicy policies[] = {proto::SHRINK, proto::SHRINK, proto::REPLACE, proto::REPLACE,
                                               proto::ABORT};
  auto policy = policies[random_() % std::size(policies)];
  if (policy == proto::REPLACE)
    ranks = std::max(ranks - 2, 2);
  const auto making = history_.begin({.what = call_kind::make}, now_ns());
  auto comm = timed([&] { return host().comm_init(static_cast<uint32_t>(ranks), policy); });
  if (!comm) {
    answered(making, comm.error());
    return refuse(comm.error());
  }
  auto& made = history_.end(making, now_ns());
  made.communicator = comm->commid();
  members_.clear();
  for (auto& device : comm->devices())
    members_.insert(id_of(device).value);
  made.members.assign(members_.begin(), members_.end());
  made_[comm->commid()] = making;
  for (int i = 0; i < 10 && run(id_of(*comm), policy); ++i) {
  }
  const auto ending = history_.begin({.what = call_kind::destroy, .communicator = comm->commid()}, now_ns());
  const auto problem = timed([&] { return host().destroy(id_of(*comm)); });
  if (answered(ending, problem) && problem)
    note_end(id_of(*comm), policy);
}

uint64_t soak_work::now_ns() {
  return static_cast<uint64_t>(steady::now().time_since_epoch().count());
}

bool soak_work::answered(size_t call, const caf::error& problem) {
  const auto code = code_of(problem);
  if (problem
      && (code == errc::device_lost || code == errc::timed_out || code == errc::unreachable || code == errc::ok))
    return false;
  auto& x = history_.end(call, now_ns());
  x.reason = problem ? render(problem) : "";
  if (problem)
    x.answer = code == errc::unknown_communicator ? call_outcome::gone
               : code == errc::aborted            ? call_outcome::broken
                                                  : call_outcome::refused;
  return true;
}

void soak_work::note_end(communicator_id id, proto::FailurePolicy policy) {
  const auto made = made_.extract(id.value);
  if (!made)
    return;
  auto may_end = policy == proto::ABORT;
  const auto there = host().devices();
  may_end = may_end || !there || std::ranges::none_of(there->devices(), [&](auto& x) {
              return members_.contains(id_of(x.metadata()).value);
            });
  history_.at(made.mapped()).may_end = may_end;
}

test::client_history::judgement soak_work::judge_history() {
  const auto asked_ns = now_ns();
  const auto info = host().info();
  if (!info)
    return {"the cluster does not say at the end which communicators there are: " + render(info.error()), {}};
  std::vector<uint64_t> listed;
  for (auto& each : info->communicators())
    listed.push_back(each.comm_id());
  history_.note_listed(listed, asked_ns, now_ns());
  return history_.judge();
}

test::collective_options soak_work::draw(uint32_t ranks) {
  test::collective_options x;
  auto& kinds = collective_kinds();
  do
    x.kind = kinds[drawn_++ % kinds.size()];
  while (x.kind == proto::SEND_RECV && ranks == 1);
  std::vector<std::string> names{"auto"};
  for (auto& algorithm : algorithms())
    if (algorithm.kind == x.kind)
      names.emplace_back(algorithm.name);
  x.algorithm = names[random_() % names.size()];
  x.ranks = ranks;
  auto elements = elements_[random_() % elements_.size()];
  x.count = has_v_variant(x.kind) ? std::max<uint64_t>(elements / ranks, 1) : elements; // of a block
  x.root = static_cast<uint32_t>(random_() % ranks);
  x.peer = (x.root + 1) % ranks;
  x.in_place = random_() % 2 == 0;
  return x;
}

std::vector<soak_work::planned> soak_work::draw_together(uint32_t ranks) {
  std::vector<planned> result;
  uint64_t at = 0;
  for (auto n = random_() % 2 == 0 ? 1 : 2 + random_() % 4; n > 0; --n) {
    auto what = draw(ranks);
    auto& next = result.emplace_back(planned{what, test::collective_expectation{what, drawn_}, at});
    at += next.expected.bytes();
  }
  return result;
}

caf::error soak_work::prepare(communicator_id communicator, const members& then, planned& x) {
  x.request.set_comm_id(communicator.value);
  *x.request.mutable_collective() = collective_of(x.what);
  for (uint32_t rank = 0; rank < x.what.ranks; ++rank) {
    auto& device = then.devices(static_cast<int>(rank));
    auto base = device.minmemaddr().value() + x.at;
    auto problem = timed([&] {
      return host().copy_to_device(id_of(device), base, byte_block::of(std::vector{x.expected.before(rank)}));
    });
    if (problem)
      return problem;
    x.request.add_inputs(base + x.expected.input_at());
    if (!x.what.in_place)
      x.request.add_outputs(base + x.expected.output_at());
  }
  return caf::none;
}

/// A single call is answered before its end is awaited; of several, only the last answer is awaited.
caf::error soak_work::call(std::vector<planned>& together) {
  for (auto& x : together)
    x.call = history_.begin({.what = call_kind::run, .communicator = x.request.comm_id(), .operation = ++operations_},
                            now_ns());
  if (together.size() == 1) {
    auto sequence = host().collective(together.front().request);
    if (!sequence)
      return std::move(sequence.error());
    history_.at(together.front().call).sequence = sequence->value;
    return caf::none;
  }
  for (auto& x : together)
    host().begin_collective(x.request);
  return host().finish_calls();
}

bool soak_work::run(communicator_id id, proto::FailurePolicy policy) {
  const auto asking = history_.begin({.what = call_kind::status, .communicator = id.value}, now_ns());
  auto then = timed([&] { return host().status(id); });
  if (!then) {
    if (answered(asking, then.error()))
      note_end(id, policy);
    return refuse(then.error()), false;
  }
  auto& said = history_.end(asking, now_ns());
  said.epoch = then->epoch();
  said.members = devices_of(*then);
  members_.insert(said.members.begin(), said.members.end());
  auto together = draw_together(static_cast<uint32_t>(then->devices_size()));
  for (auto& x : together)
    if (auto problem = prepare(id, *then, x))
      return refuse(problem), true;
  bool met_event = cluster_.take_event();
  auto begun = steady::now();
  if (auto problem = timed([&] { return call(together); })) {
    const bool one = together.size() == 1; // of several, some may have been taken
    if (one && answered(together.front().call, problem) && code_of(problem) == errc::unknown_communicator)
      note_end(id, policy);
    refuse(problem);
    return code_of(problem) != errc::unknown_communicator && timed([&] { return host().wait(id, seconds{60}); });
  }
  auto ended = timed([&] { return host().wait(id, seconds{60}); });
  if (met_event || cluster_.take_event())
    result_.recoveries_s.push_back(duration<double>{steady::now() - begun}.count());
  if (!ended) {
    for (size_t i = 0; i < together.size(); ++i)
      cannot_judge("the wait for its end failed: " + render(ended.error()));
    return refuse(ended.error()), false;
  }
  result_.reran += ended->epoch() > then->epoch() ? together.size() : 0;
  const auto failure = ended->status() == gpu_sim::SUCCESS ? caf::error{}
                                                           : error_from_wire(ended->code(), ended->error());
  if (failure)
    refuse(failure);
  for (auto& x : together) {
    auto groups = possible_groups(*ended, *then, policy);
    auto& call = history_.at(x.call);
    for (auto& each : groups)
      call.groups.push_back(devices_of(each));
    if (failure && together.size() > 1)
      continue; // it is not known which of them has failed
    auto& its = history_.end(x.call, now_ns());
    its.reason = failure ? render(failure) : "";
    its.answer = !failure                            ? call_outcome::done
                 : code_of(failure) == errc::aborted ? call_outcome::broken
                                                     : call_outcome::failed;
  }
  for (size_t i = 0; i < together.size(); ++i)
    judge(*ended, *then, policy, together[i], fmt::format("{} of {} called together", i + 1, together.size()));
  const bool over = ended->status() != gpu_sim::SUCCESS && policy == proto::ABORT; // it takes no more calls
  return !over;
}

void soak_work::judge(const members& now, const members& then, proto::FailurePolicy policy, const planned& x,
                      const std::string& which) {
  bool failed = now.status() != gpu_sim::SUCCESS; // or one that was called with it
  if (failed && x.what.in_place && code_of(error_from_wire(now.code(), now.error())) == errc::aborted)
    return cannot_judge("it failed, and says that it may have overwritten its inputs");
  std::map<uint64_t, std::vector<int64_t>> found;
  std::string unread; // a rank that was lost since
  for (auto& device : now.devices()) {
    auto region = timed([&] {
      return host().copy_to_host(id_of(device), device.minmemaddr().value() + x.at, x.expected.bytes());
    });
    if (!region) {
      unread = render(region.error());
      continue;
    }
    auto values = region->as<int64_t>();
    found[id_of(device).value] = {values.begin(), values.end()};
  }
  std::string wrong;
  std::vector<test::client_call::group> right_over; // the values fit more than one where the lost ones' do not count
  for (auto& holders : possible_groups(now, then, policy)) {
    std::string its;
    for (uint32_t place = 0; place < holders.size() && its.empty(); ++place)
      if (auto region = found.find(holders[place].device); region != found.end())
        its = x.expected.wrong_in(holders, place, failed, region->second);
    if (its.empty())
      right_over.push_back(devices_of(holders));
    else
      wrong = std::move(its);
  }
  if (!right_over.empty())
    wrong.clear();
  for (auto& device : found) {
    const auto number = history_.begin({.what = call_kind::read,
                                        .communicator = x.request.comm_id(),
                                        .operation = history_.at(x.call).operation,
                                        .device = device.first},
                                       now_ns());
    auto& read = history_.end(number, now_ns());
    read.groups = failed ? std::vector<test::client_call::group>{} : right_over;
    read.is_input = failed && wrong.empty();
    if (failed && x.call != 0 && !history_.at(x.call).times.is_known())
      read.groups = history_.at(x.call).groups; // it may be another one that has failed
  }
  if (!wrong.empty()) {
    ++result_.wrong;
    fmt::print("WRONG: {}, {}: {}; {}\n", text_of(x.what), which, wrong, now.ShortDebugString());
  } else if (found.empty() && unread.empty()) {
    cannot_judge(failed ? "it failed, and no rank is left to be read" : "its answer names no rank");
  } else if (!unread.empty()) {
    cannot_judge("a rank could not be read after its end: " + unread);
  } else if (!failed) {
    ++result_.right;
    const auto now_right = steady::now();
    result_.longest_gap_s = std::max(result_.longest_gap_s, duration<double>{now_right - latest_right_}.count());
    latest_right_ = now_right;
    result_.kinds.insert(x.what.kind);
  }
}

void soak_work::refuse(const caf::error& why) {
  ++result_.refused;
  auto reason = render(why);
  if (reason.empty()) {
    ++result_.wrong;
    fmt::print("WRONG: refused without a reason\n");
  }
  ++result_.reasons[without_numbers(reason)];
}

void soak_work::cannot_judge(const std::string& why) {
  ++result_.unjudged;
  ++result_.why_unjudged[without_numbers(why)];
}

} // namespace ringmaster::soak
