#include "diagnosis/readers/job_log.hpp"

#include "diagnosis/readers/log_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace ringmaster::diagnosis {

namespace {

constexpr size_t notes_max = 100'000, text_max = 240;

/// The rank in a launcher's prefix: "[rank3]:", "3: " (srun -l), "[1,3]<stdout>:" (mpirun).
std::optional<uint32_t> prefixed_rank(std::string_view line) {
  std::optional<uint64_t> rank;
  if (auto start = line.find("[rank"); start != line.npos && start < 80)
    rank = leading_number(line.substr(start + 5));
  else if (line.starts_with("[1,"))
    rank = leading_number(line.substr(3));
  else if (auto colon = line.find(": ");
           colon != line.npos && colon > 0 && colon < 7
           && std::ranges::all_of(line.substr(0, colon), [](unsigned char x) { return std::isdigit(x) || x == ' '; }))
    rank = leading_number(trimmed(line.substr(0, colon)));
  return rank && *rank < UINT32_MAX ? std::optional{static_cast<uint32_t>(*rank)} : std::nullopt;
}

/// "hosta:812:901 [3] NCCL INFO ...": the process before " NCCL ".
std::optional<process_key> nccl_process(std::string_view line, size_t nccl_at) {
  auto head = trimmed(line.substr(0, nccl_at));
  if (head.ends_with(']')) { // the device
    auto open = head.rfind('[');
    if (open == head.npos)
      return {};
    head = trimmed(head.substr(0, open));
  }
  head = head.substr(head.find_last_of(" \t]>") + 1); // npos + 1 is 0
  auto second = head.rfind(':');
  if (second == head.npos || second == 0)
    return {};
  auto first = head.rfind(':', second - 1);
  if (first == head.npos)
    return {};
  auto pid = leading_number(head.substr(first + 1));
  if (!pid)
    return {};
  return process_key{std::string{head.substr(0, first)}, *pid};
}

std::string_view nccl_type(uint64_t number) {
  constexpr std::array<std::string_view, 12> names{"Char",   "Byte",     "Int",           "UInt32",
                                                   "Long",   "UInt64",   "Half",          "Float",
                                                   "Double", "BFloat16", "Float8_e4m3fn", "Float8_e5m2"};
  return number < names.size() ? names[number] : "unknown";
}

/// NCCL's "AllReduce" as PyTorch calls it: "all_reduce".
std::string torch_name(std::string_view nccl) {
  std::string result;
  for (unsigned char x : nccl) {
    if (std::isupper(x) && !result.empty())
      result += '_';
    result += static_cast<char>(std::tolower(x));
  }
  return result;
}

class log_reader {
public:
  log_reader(std::string_view text, file_evidence& to) : rest_(text), to_(to) {}

  size_t read() {
    std::string_view line;
    for (size_t number = 1; take_line(rest_, line); ++number) {
      line_ = number;
      if (line.size() > 16384)
        continue; // no known line is that long
      if (nccl(line) || watchdog(line) || exit_of_process(line))
        ++understood_;
    }
    return understood_;
  }

private:
  std::string source() const { return fmt::format("{}, line {}", to_.name, line_); }
  bool note(std::optional<uint32_t> rank, process_key process, rank_note::kind what, std::string_view text) {
    if (to_.notes.size() < notes_max)
      to_.notes.push_back({rank, std::move(process), {what, std::string{trimmed(text).substr(0, text_max)}, source()}});
    return true;
  }
  bool nccl(std::string_view line);
  bool nccl_creation(std::string_view text, const process_key& process);
  bool nccl_collective(std::string_view text, const process_key& process);
  bool watchdog(std::string_view line);
  bool exit_of_process(std::string_view line);

  std::string_view rest_;
  file_evidence& to_;
  size_t line_ = 0, understood_ = 0;
  std::optional<uint32_t> failed_rank_; ///< torchrun's report names the rank some lines before the exit code.
  std::map<std::pair<process_key, std::string>, std::string> names_of_pointers_;
};

bool log_reader::nccl(std::string_view line) {
  auto at = line.find(" NCCL ");
  if (at == line.npos)
    return false;
  auto process = nccl_process(line, at);
  if (!process)
    return false;
  auto text = line.substr(at + 6);
  if (text.starts_with("WARN"))
    return note(prefixed_rank(line), std::move(*process), rank_note::kind::failed, text);
  if (!text.starts_with("INFO "))
    return false;
  text = trimmed(text.substr(5));
  return nccl_creation(text, *process) || nccl_collective(text, *process);
}

/// "ncclCommInitRankConfig comm 0x55 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 1b000 commId 0x5f - Init START"
bool log_reader::nccl_creation(std::string_view text, const process_key& process) {
  const bool starts = text.ends_with("Init START"), completes = text.ends_with("Init COMPLETE");
  if (!starts && !completes)
    return false;
  auto rank = number_after(text, " rank "), size = number_after(text, " nranks ");
  auto pointer = std::string{word_after(text, "comm ")};
  auto id = std::string{word_after(text, "commId ")};
  if (!rank || !size || *rank >= *size || *size > (1u << 20))
    return false;
  if (id.empty()) // before NCCL 2.14: creations of one size are told apart by their order on each process
    id = fmt::format("of {} ranks", *size);
  names_of_pointers_[{process, pointer}] = id;
  auto& communicator = to_.communicators[id];
  communicator.size = static_cast<uint32_t>(*size);
  auto& member = communicator.members[static_cast<uint32_t>(*rank)];
  member.process = process;
  member.created = member.created || completes;
  member.source = source();
  return true;
}

/// "AllReduce: opCount 1f sendbuff 0x7f recvbuff 0x7f count 1024 datatype 7 op 0 root 0 comm 0x55 [nranks=8] stream 0x"
bool log_reader::nccl_collective(std::string_view text, const process_key& process) {
  auto colon = text.find(": opCount ");
  if (colon == text.npos)
    return false;
  auto sequence = number_after(text, "opCount ", 16);
  auto count = number_after(text, " count "), type = number_after(text, "datatype "),
       root = number_after(text, "root ");
  auto known = names_of_pointers_.find({process, std::string{word_after(text, "comm ")}});
  if (!sequence || !count || known == names_of_pointers_.end() || to_.calls.size() >= 50'000'000)
    return false;
  to_.calls.push_back({process, known->second, *sequence, torch_name(text.substr(0, colon)),
                       std::string{nccl_type(type.value_or(99))}, *count, static_cast<uint32_t>(root.value_or(0))});
  return true;
}

/// Lines of ProcessGroupNCCL's watchdog, such as
/// "[rank3]:[E ...] [PG ID 0 PG GUID 0(default_pg) Rank 3] ... at work: 17, last enqueued NCCL work: 20, last completed
/// NCCL work: 16." and "... Watchdog caught collective operation timeout: WorkNCCL(SeqNum=17, OpType=ALLREDUCE, ...".
bool log_reader::watchdog(std::string_view line) {
  watchdog_line x;
  x.rank = prefixed_rank(line);
  x.source = source();
  if (auto prefix = after(line, "[PG ")) {
    auto inside = prefix->substr(0, prefix->find(']'));
    auto guid = after(inside, "GUID ");
    auto name = guid ? *guid : inside;
    if (!guid && name.starts_with("ID "))
      name.remove_prefix(3);
    x.group = name.substr(0, name.find_first_of(" (,"));
    if (auto open = name.find('('); open != name.npos)
      x.description = name.substr(open + 1, name.find(')', open) - open - 1);
    if (auto rank = number_after(inside, "Rank "))
      x.group_rank = static_cast<uint32_t>(*rank);
  } else if (auto rank = number_after(line, "[Rank ")) {
    x.group_rank = static_cast<uint32_t>(*rank);
  }
  if (auto work = after(line, "Watchdog caught collective operation timeout: WorkNCCL(")) {
    x.timed_out = static_cast<int64_t>(number_after(*work, "SeqNum=").value_or(0));
    x.name = std::string{word_after(*work, "OpType=")};
    x.elements_in = number_after(*work, "NumelIn=").value_or(0);
    x.elements_out = number_after(*work, "NumelOut=").value_or(0);
    x.waited_ms = number_after(*work, "ran for ").value_or(0);
  } else if (line.find("last enqueued") != line.npos) {
    auto number = [&](std::string_view key) {
      auto rest = after(line, key);
      auto found = rest ? number_after(*rest, "work: ") : std::nullopt;
      return found ? static_cast<int64_t>(*found) : -1;
    };
    x.enqueued = number("last enqueued");
    x.completed = number("last completed");
    if (auto work = number_after(line, "at work: "); work)
      x.timed_out = static_cast<int64_t>(*work);
    else if (auto id = number_after(line, "work sequence id: "); id)
      x.timed_out = static_cast<int64_t>(*id);
    else if (auto nccl = number_after(line, "Timeout at NCCL work: "); nccl)
      x.timed_out = static_cast<int64_t>(*nccl);
  } else if (line.find("watchdog got stuck for") != line.npos) {
    return note(x.rank ? x.rank : x.group_rank, {}, rank_note::kind::hung, line);
  } else {
    return false;
  }
  if (to_.watchdogs.size() < notes_max)
    to_.watchdogs.push_back(std::move(x));
  return true;
}

/// The end of a process, as its launcher reports it.
bool log_reader::exit_of_process(std::string_view line) {
  if (line.find("(local_rank: ") != line.npos
      && trimmed(line).starts_with("rank")) { // "  rank      : 3 (local_rank: 3)"
    if (auto rank = number_after(line, ": "); rank && *rank < UINT32_MAX)
      failed_rank_ = static_cast<uint32_t>(*rank);
    return failed_rank_.has_value();
  }
  if (trimmed(line).starts_with("exitcode") && failed_rank_) { // "  exitcode  : -9 (pid: 812)"
    process_key process{{}, number_after(line, "pid: ").value_or(0)};
    return note(std::exchange(failed_rank_, {}), process, rank_note::kind::died, line);
  }
  if (line.find("failed (exitcode: ") != line.npos) // torchrun: "failed (exitcode: -9) local_rank: 3 (pid: 812) of ..."
    if (auto pid = number_after(line, "(pid: "))
      return note({}, {{}, *pid}, rank_note::kind::died, line);
  if (line.starts_with("srun: error: ") || line.find("]: srun: error: ") != line.npos) // "node3: task 17: Killed"
    if (auto task = number_after(line, ": task "))
      return note(static_cast<uint32_t>(*task), {}, rank_note::kind::died, line);
  return false;
}

} // namespace

size_t read_job_log(std::string_view text, file_evidence& to) {
  return log_reader{text, to}.read();
}

} // namespace ringmaster::diagnosis
