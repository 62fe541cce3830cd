#include "tests/diagnosis/hung_jobs/hung_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

namespace ringmaster::test {

namespace {

using namespace diagnosis;
using form = program_call::form;

constexpr uint32_t steps = 4, ahead = 4;
constexpr int64_t start_ns = 1'772'366'400'000'000'000, ms = 1'000'000, never = INT64_MAX;

/// One rank of the run: its calls, and when each was made, started and completed; `never` if it was not.
struct running_rank {
  std::vector<program_call> calls;
  std::vector<uint64_t> sequences; ///< Of each collective among those of its group, of each transfer among the group's.
  std::vector<uint64_t> pair_numbers; ///< Of each transfer among those of its direction and peer.
  std::vector<int64_t> created, started, completed;
  size_t stop_at = SIZE_MAX, kernel_stop_at = SIZE_MAX, slow_from = SIZE_MAX;
};

class job_run {
public:
  job_run(const job_programs& programs, uint32_t seed) : programs_(programs), random_(seed) {
    ranks.resize(programs.ranks.size());
    for (uint32_t i = 0; i < ranks.size(); ++i)
      for (uint32_t step = 0; step < steps; ++step)
        ranks[i].calls.insert(ranks[i].calls.end(), programs.ranks[i].begin(), programs.ranks[i].end());
  }

  void run();
  bool has_ended() const {
    return std::ranges::all_of(ranks, [](auto& x) { return x.completed.back() != never; });
  }

  std::vector<running_rank> ranks;
  int64_t until_ns = never; ///< Events after that did not take place.

private:
  void number(running_rank& x);
  bool create(uint32_t rank);
  bool execute(uint32_t rank);
  bool execute_collective(uint32_t rank, size_t at);
  bool execute_transfer(uint32_t rank, size_t at);
  size_t head(uint32_t rank) const {
    return static_cast<size_t>(std::ranges::find(ranks[rank].completed, never) - ranks[rank].completed.begin());
  }

  const job_programs& programs_;
  std::minstd_rand random_;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, int64_t> sent_; ///< By sender, receiver and number.
};

void job_run::number(running_rank& x) {
  std::map<std::pair<uint32_t, bool>, uint64_t> next;
  std::map<std::pair<form, uint32_t>, uint64_t> next_of_pair;
  for (auto& call : x.calls) {
    x.sequences.push_back(++next[{call.group, call.what == form::collective}]);
    x.pair_numbers.push_back(++next_of_pair[{call.what, call.peer}]);
  }
  x.created.assign(x.calls.size(), never);
  x.started = x.completed = x.created;
}

bool job_run::create(uint32_t rank) {
  auto& x = ranks[rank];
  auto at = static_cast<size_t>(std::ranges::find(x.created, never) - x.created.begin());
  if (at >= std::min(x.calls.size(), x.stop_at) || at >= head(rank) + ahead)
    return false;
  auto time = at == 0 ? start_ns : x.created[at - 1];
  if (at >= ahead)
    time = std::max(time, x.completed[at - ahead]);
  time += at >= x.slow_from ? 5'000 * ms : 2 * ms + static_cast<int64_t>(random_() % 1000) * 1000;
  if (time > until_ns)
    return false;
  x.created[at] = time;
  return true;
}

bool job_run::execute(uint32_t rank) {
  auto& x = ranks[rank];
  auto at = head(rank);
  if (at >= x.calls.size() || x.created[at] == never)
    return false;
  if (x.started[at] == never) {
    if (at == x.kernel_stop_at)
      return false;
    x.started[at] = std::max(x.created[at], at == 0 ? 0 : x.completed[at - 1]) + ms;
    return true;
  }
  return x.calls[at].what == form::collective ? execute_collective(rank, at) : execute_transfer(rank, at);
}

bool job_run::execute_collective(uint32_t rank, size_t at) {
  auto& own = ranks[rank].calls[at];
  int64_t end = 0;
  std::vector<std::pair<uint32_t, size_t>> all;
  for (auto member : programs_.groups[own.group].members) {
    auto its = head(member);
    auto& other = ranks[member];
    if (its >= other.calls.size() || other.started[its] == never)
      return false;
    auto& call = other.calls[its];
    if (call.what != form::collective || call.group != own.group || other.sequences[its] != ranks[rank].sequences[at]
        || call.name != own.name || call.type != own.type || call.root != own.root
        || (call.elements != own.elements && own.name != "all_to_all"))
      return false;
    end = std::max(end, other.started[its]);
    all.emplace_back(member, its);
  }
  if (end + 3 * ms > until_ns)
    return false;
  for (auto [member, its] : all)
    ranks[member].completed[its] = end + 3 * ms;
  return true;
}

bool job_run::execute_transfer(uint32_t rank, size_t at) {
  auto& x = ranks[rank];
  auto& call = x.calls[at];
  if (call.what == form::send) {
    x.completed[at] = x.started[at] + ms;
    sent_[{rank, call.peer, x.pair_numbers[at]}] = x.completed[at];
    return true;
  }
  auto arrived = sent_.find({call.peer, rank, x.pair_numbers[at]});
  if (arrived == sent_.end())
    return false;
  x.completed[at] = std::max(x.started[at], arrived->second) + ms;
  return true;
}

void job_run::run() {
  for (auto& x : ranks)
    number(x);
  for (bool any = true; any;) {
    any = false;
    for (uint32_t rank = 0; rank < ranks.size(); ++rank)
      while (create(rank) || execute(rank))
        any = true;
  }
}

/// A job's fault: where it is and what it does to the rank's calls.
class fault_plan {
public:
  fault_plan(const job_programs& programs, job_fault fault, uint32_t seed)
    : programs_(programs), fault_(fault), random_(seed * 7919 + 17) {}

  /// Picks a rank and one of its calls in the last step but one that the fault can be at.
  bool pick();
  void plant(job_run& run) const;

  uint32_t rank = 0;
  size_t call = 0; ///< Among all calls of the rank.

private:
  bool fits(size_t i) const;
  std::optional<uint32_t> other_group(const program_call& x) const;
  const std::vector<program_call>& own() const { return programs_.ranks[rank]; }

  const job_programs& programs_;
  job_fault fault_;
  std::minstd_rand random_;
};

std::optional<uint32_t> fault_plan::other_group(const program_call& x) const {
  for (auto& call : own())
    if (call.what == form::collective && programs_.groups[call.group].members != programs_.groups[x.group].members)
      return call.group;
  return {};
}

bool fault_plan::fits(size_t i) const {
  auto& x = own()[i];
  const bool collective = x.what == form::collective && programs_.groups[x.group].members.size() > 2;
  switch (fault_) {
    case job_fault::other_root: return collective && x.name == "broadcast";
    case job_fault::other_size: return collective && x.name != "all_to_all";
    case job_fault::other_datatype:
    case job_fault::other_collective:
    case job_fault::skips: return collective;
    case job_fault::other_group: return collective && other_group(x).has_value();
    case job_fault::no_partner: return x.what == form::send;
    case job_fault::other_order: {
      if (i + 1 >= own().size() || x.what != form::collective || own()[i + 1].what != form::collective)
        return false;
      auto& y = own()[i + 1];
      return x.group != y.group || x.name != y.name || x.elements != y.elements;
    }
    default: return x.what == form::collective;
  }
}

bool fault_plan::pick() {
  for (int attempt = 0; attempt < 200; ++attempt) {
    rank = static_cast<uint32_t>(random_() % programs_.ranks.size());
    auto i = random_() % own().size();
    if (!fits(i))
      continue;
    call = own().size() * (steps - 2) + i;
    return true;
  }
  return false;
}

void fault_plan::plant(job_run& run) const {
  auto& x = run.ranks[rank];
  auto at = x.calls.begin() + static_cast<ptrdiff_t>(call);
  switch (fault_) {
    case job_fault::skips:
    case job_fault::no_partner: x.calls.erase(at); break;
    case job_fault::other_collective: at->name = at->name == "all_reduce" ? "_all_gather_base" : "all_reduce"; break;
    case job_fault::other_size: at->elements = at->elements * 2 + 7; break;
    case job_fault::other_datatype: at->type = at->type == "BFloat16" ? "Half" : "BFloat16"; break;
    case job_fault::other_root: at->root = 1; break;
    case job_fault::other_order: std::iter_swap(at, at + 1); break;
    case job_fault::other_group: at->group = *other_group(*at); break;
    case job_fault::slow: x.slow_from = call - own().size(); break;
    case job_fault::kernel_hangs: x.kernel_stop_at = call; break;
    case job_fault::no_communicator: // all others come to the creation, which is before the last step
      for (uint32_t i = 0; i < run.ranks.size(); ++i)
        run.ranks[i].stop_at = programs_.ranks[i].size() * (steps - 1);
      break;
    default: x.stop_at = call; break;
  }
}

fault_kind truth_of(job_fault x) {
  switch (x) {
    case job_fault::none: return fault_kind::none;
    case job_fault::stops:
    case job_fault::skips: return fault_kind::never_called;
    case job_fault::other_collective: return fault_kind::other_collective;
    case job_fault::other_size: return fault_kind::other_size;
    case job_fault::other_datatype: return fault_kind::other_datatype;
    case job_fault::other_root: return fault_kind::other_root;
    case job_fault::other_order: return fault_kind::other_order;
    case job_fault::other_group: return fault_kind::other_group;
    case job_fault::slow: return fault_kind::slow;
    case job_fault::dies: return fault_kind::died;
    case job_fault::kernel_hangs: return fault_kind::hung_in_kernel;
    case job_fault::in_data_loader: return fault_kind::in_data_loader;
    case job_fault::in_checkpoint: return fault_kind::in_checkpoint;
    case job_fault::no_communicator: return fault_kind::communicator_creation;
    case job_fault::no_partner: return fault_kind::no_partner;
  }
  return fault_kind::none;
}

rank_records records_of(job_records& job, const job_programs& programs, const running_rank& x, uint32_t rank,
                        int64_t dumped_ns) {
  rank_records result;
  result.rank = rank;
  result.host = fmt::format("host{}", rank / 4);
  result.pid = 1000 + rank;
  result.has_calls = result.reports_starts = true;
  result.dumped_ns = dumped_ns;
  for (size_t i = 0; i < x.calls.size() && x.created[i] != never; ++i) {
    auto& from = x.calls[i];
    rank_call call;
    call.sequence = x.sequences[i];
    call.created_ns = x.created[i];
    call.started_ns = x.started[i] == never ? 0 : x.started[i];
    call.completed_ns = x.completed[i] == never ? 0 : x.completed[i];
    call.state = x.completed[i] != never ? call_state::completed
                 : x.started[i] != never ? call_state::started
                                         : call_state::scheduled;
    call.group = from.group;
    call.name = job.texts.of(from.name);
    auto& members = programs.groups[from.group].members;
    if (from.what != form::collective) {
      call.form = from.what == form::send ? call_form::send : call_form::receive;
      call.peer = static_cast<uint32_t>(std::ranges::find(members, from.peer) - members.begin());
    }
    if (from.root != UINT32_MAX)
      call.root = from.root;
    call_shape shape;
    shape.input_elements = shape.output_elements = from.elements;
    shape.input_sizes = shape.output_sizes = job.texts.of(fmt::format("[[{}]]", from.elements));
    shape.input_types = shape.output_types = job.texts.of(from.type);
    auto known = std::ranges::find(job.shapes, shape);
    call.shape = static_cast<uint32_t>(known - job.shapes.begin());
    if (known == job.shapes.end())
      job.shapes.push_back(shape);
    result.calls.push_back(call);
  }
  return result;
}

std::string stack_text(uint32_t rank, job_fault fault) {
  auto frames = fault == job_fault::in_data_loader
                  ? "    wait (threading.py:331)\n    get (multiprocessing/queues.py:113)\n"
                    "    _try_get_data (torch/utils/data/dataloader.py:1133)\n"
                    "    _next_data (torch/utils/data/dataloader.py:1298)\n    train (train.py:41)\n"
                  : "    write (torch/serialization.py:778)\n    save (torch/serialization.py:440)\n"
                    "    save_checkpoint (train.py:88)\n    train (train.py:52)\n";
  return fmt::format("Process {}: python train.py --rank {}\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
                     "Thread {} (idle): \"MainThread\"\n{}    <module> (train.py:99)\n",
                     1000 + rank, rank, 1000 + rank, frames);
}

std::string creation_log(size_t ranks, uint32_t without) {
  std::string result;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    for (int which = 0; which < 2; ++which) {
      auto line = fmt::format(
        "host{}:{}:{} [{}] NCCL INFO ncclCommInitRankConfig comm {:#x} rank {} nranks {} cudaDev {} "
        "nvmlDev {} busId 1b000 commId {:#x} - Init ",
        rank / 4, 1000 + rank, 2000 + rank, rank % 4, 0x5500 + which * 256 + rank, rank, ranks, rank % 4, rank % 4,
        0xabc0 + which);
      if (which == 0)
        result += line + "START\n" + line + "COMPLETE\n";
      else if (rank != without)
        result += line + "START\n";
    }
  return result;
}

} // namespace

std::string_view name_of(job_fault x) {
  constexpr std::array<std::string_view, 16> names{
    "none",           "stops",        "skips",          "other_collective", "other_size",
    "other_datatype", "other_root",   "other_order",    "other_group",      "slow",
    "dies",           "kernel_hangs", "in_data_loader", "in_checkpoint",    "no_communicator",
    "no_partner"};
  return names[static_cast<size_t>(x)];
}

std::span<const job_fault> job_faults() {
  static constexpr std::array all{job_fault::stops,         job_fault::skips,           job_fault::other_collective,
                                  job_fault::other_size,    job_fault::other_datatype,  job_fault::other_root,
                                  job_fault::other_order,   job_fault::other_group,     job_fault::slow,
                                  job_fault::dies,          job_fault::kernel_hangs,    job_fault::in_data_loader,
                                  job_fault::in_checkpoint, job_fault::no_communicator, job_fault::no_partner};
  return all;
}

std::optional<hung_job> hang(const job_programs& programs, job_fault fault, uint32_t seed) {
  job_run run{programs, seed};
  fault_plan plan{programs, fault, seed};
  hung_job result;
  if (fault != job_fault::none) {
    if (!plan.pick())
      return {};
    plan.plant(run);
    if (fault == job_fault::slow)
      run.until_ns = start_ns + 60'000 * ms;
  }
  run.run();
  if (run.has_ended() && fault != job_fault::none)
    return {}; // the fault did no harm, such as an exchange of calls that the GPU can both complete
  int64_t last = start_ns;
  for (auto& x : run.ranks)
    for (auto time : x.completed)
      last = std::max(last, time == never ? 0 : time);
  const auto dumped = fault == job_fault::slow ? run.until_ns : last + 600'000 * ms;
  for (auto& group : programs.groups)
    result.records.groups.push_back({fmt::format("{}", result.records.groups.size()), group.name, group.members});
  for (uint32_t i = 0; i < run.ranks.size(); ++i)
    if (fault != job_fault::dies || i != plan.rank)
      result.records.ranks.push_back(records_of(result.records, programs, run.ranks[i], i, dumped));
  result.culprit = plan.rank;
  result.truth = truth_of(fault);
  if (fault == job_fault::in_data_loader || fault == job_fault::in_checkpoint)
    result.texts.push_back(stack_text(plan.rank, fault));
  if (fault == job_fault::no_communicator)
    result.texts.push_back(creation_log(run.ranks.size(), plan.rank));
  result.story = fmt::format("{} of rank {} at call {}, seed {}", name_of(fault), plan.rank, plan.call, seed);
  return result;
}

} // namespace ringmaster::test
