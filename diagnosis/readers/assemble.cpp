// All files as one job: which rank each dump, process and communicator belongs to.
#include "diagnosis/readers/dump_ranks.hpp"
#include "diagnosis/readers/file_evidence.hpp"
#include "diagnosis/readers/log_lines.hpp"
#include "messages/errc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace ringmaster::diagnosis {

namespace {

/// Moves the records of files into the job, with the job's numbers for texts, shapes, stacks and groups.
class part_merger {
public:
  explicit part_merger(job_records& job) : job_(job) {}

  struct numbers {
    std::vector<text_id> texts;
    std::vector<uint32_t> shapes, stacks, groups;
  };

  numbers merge(const job_records& part) {
    numbers to;
    for (text_id i = 0; i < part.texts.size(); ++i)
      to.texts.push_back(job_.texts.of(part.texts.text(i)));
    for (auto x : part.shapes) {
      for (auto* text : {&x.input_sizes, &x.output_sizes, &x.input_types, &x.output_types})
        *text = to.texts[*text];
      to.shapes.push_back(number_of(x));
    }
    for (auto x : part.stacks) {
      for (auto& frame : x)
        frame = {to.texts[frame.function], to.texts[frame.file], frame.line};
      to.stacks.push_back(number_of(x));
    }
    for (auto& x : part.groups)
      to.groups.push_back(job_.group_of(x));
    return to;
  }

private:
  uint32_t number_of(const call_shape& x) {
    std::string key;
    for (uint64_t each : {uint64_t{x.input_sizes}, uint64_t{x.output_sizes}, uint64_t{x.input_types},
                          uint64_t{x.output_types}, x.input_elements, x.output_elements})
      key.append(reinterpret_cast<const char*>(&each), sizeof each);
    auto [at, added] = shapes_.emplace(key, static_cast<uint32_t>(job_.shapes.size()));
    if (shapes_.size() == 1)
      at->second = 0; // the first is that of no shape
    else if (added)
      job_.shapes.push_back(x);
    return at->second;
  }
  uint32_t number_of(const call_stack& x) {
    std::string key;
    for (auto& frame : x)
      key.append(reinterpret_cast<const char*>(&frame), sizeof frame);
    if (key.empty())
      return 0;
    auto [at, added] = stacks_.emplace(key, static_cast<uint32_t>(job_.stacks.size()));
    if (added)
      job_.stacks.push_back(x);
    return at->second;
  }

  job_records& job_;
  std::unordered_map<std::string, uint32_t> shapes_, stacks_;
};

class assembly {
public:
  explicit assembly(std::vector<file_evidence>& all) : all_(all), merger_(job_) {}

  caf::expected<job_records> run();

private:
  rank_records& rank_of(uint32_t rank) {
    auto at = std::ranges::lower_bound(job_.ranks, rank, {}, &rank_records::rank);
    if (at == job_.ranks.end() || at->rank != rank) {
      at = job_.ranks.insert(at, rank_records{});
      at->rank = rank;
    }
    return *at;
  }
  void add_dump(file_evidence& x);
  void learn_processes();
  std::optional<uint32_t> rank_of_process(const process_key& x) const;
  void add_stacks(file_evidence& x);
  void add_notes(file_evidence& x);
  /// Global ranks of a communicator's members, as far as they are known; a group that has them all, if there is one.
  std::vector<std::optional<uint32_t>> members_of(const logged_communicator& x) const;
  uint32_t group_of_communicator(const std::string& id, const logged_communicator& x);
  void add_creations(file_evidence& x);
  void add_logged_calls(file_evidence& x);
  void add_counts(file_evidence& x);
  void add_watchdogs();
  uint32_t group_of_line(const watchdog_line& x, uint32_t rank);
  void complete_groups();

  std::vector<file_evidence>& all_;
  job_records job_;
  part_merger merger_;
  uint32_t world_ = 0; ///< Ranks of the largest communicator in logs.
  std::map<process_key, uint32_t> ranks_of_processes_;
  std::map<uint64_t, std::optional<uint32_t>> ranks_of_pids_; ///< None: several hosts have the pid.
};

void assembly::add_dump(file_evidence& x) {
  auto to = merger_.merge(x.part);
  auto& from = x.part.ranks.front();
  for (auto& call : from.calls) {
    call.group = to.groups[call.group];
    call.name = to.texts[call.name];
    call.shape = to.shapes[call.shape];
    call.stack = to.stacks[call.stack];
  }
  for (auto& progress : from.progress)
    progress.group = to.groups[progress.group];
  from.rank = *x.rank;
  auto& rank = rank_of(*x.rank);
  auto last = [](const rank_records& y) { return y.calls.empty() ? 0 : y.calls.back().created_ns; };
  if (!rank.has_calls || last(from) > last(rank)) {
    if (rank.has_calls)
      job_.remarks.push_back(fmt::format("rank {} has two dumps: {} is read, {} is older", *x.rank, x.name,
                                         rank.sources.front()));
    rank = std::move(from);
  } else {
    job_.remarks.push_back(fmt::format("rank {} has two dumps: {} is read, {} is older", *x.rank, rank.sources.front(),
                                       x.name));
  }
}

/// In the largest communicator a process's rank is its rank in the job.
void assembly::learn_processes() {
  for (auto& file : all_)
    for (auto& [id, x] : file.communicators)
      world_ = std::max(world_, x.size);
  for (auto& file : all_)
    for (auto& [id, x] : file.communicators)
      if (x.size == world_)
        for (auto& [rank, member] : x.members) {
          if (member.process.pid == 0)
            continue;
          ranks_of_processes_.emplace(member.process, rank);
          auto [at, added] = ranks_of_pids_.emplace(member.process.pid, rank);
          if (!added && at->second != rank)
            at->second.reset();
        }
  for (auto& [process, rank] : ranks_of_processes_) {
    auto& x = rank_of(rank);
    if (x.host.empty())
      x.host = process.host;
    x.pid = process.pid;
  }
}

std::optional<uint32_t> assembly::rank_of_process(const process_key& x) const {
  if (auto at = ranks_of_processes_.find(x); at != ranks_of_processes_.end())
    return at->second;
  auto at = ranks_of_pids_.find(x.pid);
  return at != ranks_of_pids_.end() ? at->second : std::nullopt;
}

void assembly::add_stacks(file_evidence& x) {
  if (x.stacks.empty())
    return;
  auto to = merger_.merge(x.part);
  for (auto& process : x.stacks) {
    auto rank = process.rank ? process.rank : rank_of_process(process.process);
    if (!rank && x.stacks.size() == 1)
      for (auto mark : {"rank", "rank_", "rank-"})
        if (auto number = number_after(x.name.substr(x.name.rfind('/') + 1), mark); number && !rank)
          rank = static_cast<uint32_t>(*number);
    if (!rank) {
      job_.remarks.push_back(
        fmt::format("{}: the rank of process {} is unknown: put a line \"rank N\" before its stack, "
                    "or give a log that names the process",
                    x.name, process.process.pid));
      continue;
    }
    for (auto& thread : process.threads) {
      thread.stack = to.stacks[thread.stack];
      rank_of(*rank).threads.push_back(std::move(thread));
    }
  }
}

void assembly::add_notes(file_evidence& x) {
  for (auto& note : x.notes)
    if (auto rank = note.rank ? note.rank : rank_of_process(note.process))
      rank_of(*rank).notes.push_back(std::move(note.note));
    else
      job_.remarks.push_back(fmt::format("{}: {}", note.note.source, note.note.text));
}

std::vector<std::optional<uint32_t>> assembly::members_of(const logged_communicator& x) const {
  std::vector<std::optional<uint32_t>> result(x.size);
  for (uint32_t i = 0; i < x.size; ++i)
    if (x.size == world_)
      result[i] = i;
  for (auto& [index, member] : x.members)
    if (index < x.size && !result[index])
      result[index] = rank_of_process(member.process);
  if (std::ranges::all_of(result, [](auto& y) { return y.has_value(); }))
    return result;
  for (auto& group : job_.groups) {
    bool fits = group.members.size() == result.size();
    for (size_t i = 0; fits && i < result.size(); ++i)
      fits = !result[i] || *result[i] == group.members[i];
    if (fits) {
      result.assign(group.members.begin(), group.members.end());
      break;
    }
  }
  return result;
}

uint32_t assembly::group_of_communicator(const std::string& id, const logged_communicator& x) {
  process_group group{id, {}, {}};
  for (auto& member : members_of(x))
    if (member)
      group.members.push_back(*member);
  if (group.members.size() != x.size)
    std::ranges::sort(group.members);
  for (uint32_t i = 0; i < job_.groups.size(); ++i)
    if (job_.groups[i].members == group.members && !group.members.empty())
      return i; // the program's own name of it
  return job_.group_of(std::move(group));
}

/// A creation that some members have started and not completed is a call that waits for the others.
void assembly::add_creations(file_evidence& x) {
  for (auto& [id, communicator] : x.communicators) {
    if (communicator.members.empty() || communicator.size < 2)
      continue;
    const bool complete = communicator.members.size() == communicator.size
                          && std::ranges::all_of(communicator.members, [](auto& y) { return y.second.created; });
    const bool nothing_open = std::ranges::all_of(communicator.members, [](auto& y) { return y.second.created; });
    if (complete || nothing_open)
      continue;
    auto group = group_of_communicator(id, communicator);
    for (auto& [index, member] : communicator.members) {
      auto rank = communicator.size == world_ ? std::optional{index} : rank_of_process(member.process);
      if (!rank)
        continue;
      rank_call call;
      call.form = call_form::creation;
      call.group = group;
      call.name = job_.texts.of("communicator creation");
      call.state = member.created ? call_state::completed : call_state::started;
      call.created_ns = member.at_ns;
      rank_of(*rank).calls.push_back(call);
    }
  }
}

/// NCCL's log has calls and no ends: calls that all members have made, and that match, are taken as completed.
void assembly::add_logged_calls(file_evidence& x) {
  std::map<std::string, std::vector<const logged_call*>> by_communicator;
  for (auto& call : x.calls)
    by_communicator[call.communicator].push_back(&call);
  for (auto& [id, calls] : by_communicator) {
    auto& communicator = x.communicators[id];
    std::map<process_key, uint64_t> last;
    for (auto* call : calls)
      last[call->process] = std::max(last[call->process], call->sequence);
    uint64_t common = UINT64_MAX;
    for (auto& [process, sequence] : last)
      common = std::min(common, sequence);
    const bool all_called = last.size() >= communicator.size;
    bool match = true;
    const logged_call* first = nullptr;
    for (auto* call : calls)
      if (call->sequence == common) {
        first = first == nullptr ? call : first;
        match &= call->name == first->name && call->type == first->type && call->elements == first->elements
                 && call->root == first->root;
      }
    auto group = group_of_communicator(id, communicator);
    for (auto* call : calls) {
      auto rank = rank_of_process(call->process);
      if (!rank
          || (rank_of(*rank).has_calls && !rank_of(*rank).sources.empty() && rank_of(*rank).sources.front() != x.name))
        continue;
      auto& to = rank_of(*rank);
      to.has_calls = true;
      to.sources = {x.name};
      call_shape shape;
      shape.input_elements = shape.output_elements = call->elements;
      shape.input_types = shape.output_types = job_.texts.of(call->type);
      shape.input_sizes = shape.output_sizes = job_.texts.of(fmt::format("[[{}]]", call->elements));
      if (job_.shapes.back() != shape)
        job_.shapes.push_back(shape);
      rank_call made;
      made.sequence = call->sequence;
      made.group = group;
      made.name = job_.texts.of(call->name);
      made.shape = static_cast<uint32_t>(job_.shapes.size() - 1);
      made.root = call->root;
      made.state = call->sequence < common || (call->sequence == common && match && all_called) ? call_state::completed
                                                                                                : call_state::scheduled;
      to.calls.push_back(made);
    }
  }
}

/// RAS counts launched operations: ranks with more than the fewest wait for those with the fewest.
void assembly::add_counts(file_evidence& x) {
  std::map<std::pair<std::string, std::string>, std::map<uint32_t, uint64_t>> operations;
  for (auto& count : x.counts)
    operations[{count.communicator, count.operation}][count.rank] = count.count;
  for (auto& [key, counts] : operations) {
    auto& [id, operation] = key;
    auto& communicator = x.communicators[id];
    auto members = members_of(communicator);
    uint64_t fewest = UINT64_MAX, most = 0;
    for (auto& [rank, count] : counts) {
      fewest = std::min(fewest, count);
      most = std::max(most, count);
    }
    process_group group{fmt::format("{} {}", id, operation), {}, {}};
    for (auto& member : members)
      if (member)
        group.members.push_back(*member);
    if (group.members.size() != members.size() || most == 0)
      continue;
    auto index = job_.group_of(std::move(group));
    for (auto& [rank, count] : counts) {
      if (rank >= members.size())
        continue;
      auto& to = rank_of(*members[rank]);
      if (to.has_calls && !to.sources.empty() && to.sources.front() != x.name)
        continue;
      to.has_calls = true;
      to.sources = {x.name};
      rank_call made;
      made.group = index;
      made.name = job_.texts.of(operation);
      made.sequence = count > fewest ? fewest + 1 : count;
      made.state = count > fewest ? call_state::scheduled : call_state::completed;
      if (made.sequence != 0)
        to.calls.push_back(made);
    }
  }
}

uint32_t assembly::group_of_line(const watchdog_line& x, uint32_t rank) {
  for (uint32_t i = 0; i < job_.groups.size(); ++i)
    if (job_.groups[i].name == x.group
        && std::ranges::find(job_.groups[i].members, rank) != job_.groups[i].members.end())
      return i;
  return job_.group_of({x.group.empty() ? "0" : x.group, x.description, {}});
}

/// What watchdogs say of ranks without a dump: how far they are in a group, and what they wait for.
void assembly::add_watchdogs() {
  for (auto& file : all_)
    for (auto& x : file.watchdogs) {
      auto found = x.rank ? x.rank : x.group_rank;
      if (!found)
        continue;
      auto group = group_of_line(x, *found);
      auto& to = rank_of(*found);
      auto progress = std::ranges::find(to.progress, group, &group_progress::group);
      if (progress == to.progress.end())
        progress = to.progress.insert(progress, group_progress{group});
      progress->enqueued = std::max({progress->enqueued, x.enqueued, x.timed_out});
      progress->completed = std::max({progress->completed, x.completed, x.timed_out - 1});
      if (x.timed_out >= 0 && !x.name.empty())
        to.notes.push_back({rank_note::kind::timed_out,
                            fmt::format("{} {} timed out after {} s", x.name, x.timed_out, x.waited_ms / 1000),
                            x.source});
      if (to.has_calls || x.timed_out < 0 || x.name.empty())
        continue;
      rank_call made;
      made.group = group;
      made.name = job_.texts.of(x.name);
      made.sequence = static_cast<uint64_t>(x.timed_out);
      if (std::ranges::none_of(to.calls, [&](auto& y) { return y.group == group && y.sequence == made.sequence; })) {
        call_shape shape;
        shape.input_elements = x.elements_in;
        shape.output_elements = x.elements_out;
        shape.input_sizes = job_.texts.of(fmt::format("[[{}]]", x.elements_in));
        shape.output_sizes = job_.texts.of(fmt::format("[[{}]]", x.elements_out));
        made.shape = static_cast<uint32_t>(job_.shapes.size());
        job_.shapes.push_back(shape);
        to.calls.push_back(made);
      }
    }
}

/// Groups without known members: those of the whole job have all ranks, others the ranks that name them.
void assembly::complete_groups() {
  for (uint32_t i = 0; i < job_.groups.size(); ++i) {
    auto& group = job_.groups[i];
    if (!group.members.empty())
      continue;
    const bool whole = group.description == "default_pg" || group.name == "0" || group.name == "default_pg";
    for (auto& rank : job_.ranks)
      if (whole || std::ranges::any_of(rank.calls, [&](auto& x) { return x.group == i; })
          || std::ranges::any_of(rank.progress, [&](auto& x) { return x.group == i; }))
        group.members.push_back(rank.rank);
  }
}

caf::expected<job_records> assembly::run() {
  std::vector<file_evidence*> dumps;
  for (auto& x : all_)
    if (x.form == evidence_form::flight_recorder_dump)
      dumps.push_back(&x);
    else if (x.form == evidence_form::unknown)
      job_.remarks.push_back(x.name + " has nothing that is known here: no dump, status, stack or line of a log");
  if (auto problem = assign_ranks(dumps, job_.remarks))
    return problem;
  std::ranges::sort(dumps, {}, [](auto* x) { return *x->rank; }); // ranks are then added at the end
  for (auto* x : dumps)
    add_dump(*x);
  learn_processes();
  for (auto& x : all_) {
    add_stacks(x);
    add_notes(x);
  }
  for (auto& x : all_) {
    add_logged_calls(x);
    add_counts(x);
  }
  for (auto& x : all_)
    add_creations(x);
  add_watchdogs();
  complete_groups();
  if (job_.ranks.empty())
    return malformed(
      "none of the files says anything about a rank; evidence are Flight Recorder dumps, NCCL RAS status, "
      "NCCL_DEBUG=INFO logs, py-spy dumps, logs with watchdog lines, and our journals");
  return std::move(job_);
}

} // namespace

caf::expected<job_records> assemble(std::vector<file_evidence> all) {
  return assembly{all}.run();
}

} // namespace ringmaster::diagnosis
