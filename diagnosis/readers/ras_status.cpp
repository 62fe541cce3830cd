#include "diagnosis/readers/ras_status.hpp"

#include "diagnosis/readers/log_lines.hpp"
#include "messages/errc.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::diagnosis {

namespace {

using kind = dump_value::kind;

constexpr std::string_view result_name(int64_t ncclResult) {
  switch (ncclResult) {
    case 1: return "unhandled CUDA error";
    case 2: return "system error";
    case 3: return "internal error";
    case 4: return "invalid argument";
    case 5: return "invalid usage";
    case 6: return "remote process error";
    default: return "error";
  }
}

/// The text form, line by line. A header "#0-1 (3f5a...) MISMATCH" says which communicator the lines below are about.
class ras_text_reader {
public:
  ras_text_reader(std::string_view text, file_evidence& to) : rest_(text), to_(to) {}

  void read() {
    std::string_view line;
    for (line_ = 1; take_line(rest_, line); ++line_)
      take(line);
    finish_operation();
  }

private:
  std::string source() const { return fmt::format("{}, line {}", to_.name, line_); }
  void take(std::string_view line);
  void begin_communicator(std::string_view line);
  void take_rank(std::string_view line, uint32_t rank);
  void finish_operation();
  /// "... managed by process 812 on node 10.0.0.3"
  static process_key process_in(std::string_view line) {
    return {std::string{word_after(line, "on node ")}, number_after(line, "rocess ").value_or(0)};
  }

  std::string_view rest_;
  file_evidence& to_;
  size_t line_ = 0;
  std::string communicator_, operation_;
  uint64_t count_ = 0; ///< Of the ranks that the next lines name.
  bool dead_ = false, has_count_ = false;
  std::string problem_;                             ///< Of the communicator.
  std::vector<std::pair<uint64_t, uint64_t>> sets_; ///< Ranks and their count of the operation.
  std::map<uint32_t, uint64_t> named_;              ///< Ranks with a line of their own, and their count.
};

/// Most ranks of a communicator have no line of their own, only their number and count.
void ras_text_reader::finish_operation() {
  constexpr uint64_t ranks_max = 1 << 20;
  std::map<uint64_t, uint64_t> named_with; // ranks by count
  for (auto& [rank, count] : named_)
    ++named_with[count];
  uint64_t size = 0, others = 0, others_count = 0;
  for (auto& [ranks, count] : sets_) {
    size += std::min(ranks, ranks_max);
    if (named_with.erase(count) == 0 && ranks > others) {
      others = ranks;
      others_count = count;
    }
  }
  for (auto& [count, ranks] : named_with) // sets of one rank have only the rank's own line
    size += ranks;
  if (!operation_.empty() && others != 0 && size <= ranks_max) {
    auto& communicator = to_.communicators[communicator_];
    communicator.size = std::max(communicator.size, static_cast<uint32_t>(size));
    for (uint32_t rank = 0; rank < size; ++rank)
      if (!named_.contains(rank))
        to_.counts.push_back({communicator_, operation_, rank, others_count});
  }
  sets_.clear();
  named_.clear();
}

void ras_text_reader::begin_communicator(std::string_view line) {
  finish_operation();
  auto open = line.find('('), close = line.find(')');
  communicator_ = open != line.npos && close != line.npos && close > open ? line.substr(open + 1, close - open - 1)
                                                                          : std::string_view{};
  problem_ = close == line.npos ? std::string_view{} : trimmed(line.substr(close + 1));
  operation_.clear();
  dead_ = has_count_ = false;
  to_.communicators[communicator_];
}

void ras_text_reader::take(std::string_view line) {
  if (line.starts_with('#'))
    return begin_communicator(line);
  auto text = trimmed(line);
  if (text == "DEAD" || text == "INCOMPLETE") {
    dead_ = text == "DEAD";
    communicator_.clear();
  } else if (text.starts_with("Process ") && text.find(" managing GPU") != text.npos) {
    auto process = process_in(text);
    to_.notes.push_back(
      {{}, process, {dead_ ? rank_note::kind::died : rank_note::kind::lost, std::string{text}, source()}});
  } else if (auto kind_text = after(text, "Communicator ranks have different ");
             kind_text && kind_text->ends_with(" operation counts")) {
    finish_operation();
    operation_ = word_after(text, "Communicator ranks have different ");
    has_count_ = false;
  } else if (auto ranks = leading_number(text);
             ranks && text.find(" ranks have launched up to operation ") != text.npos) {
    count_ = number_after(text, "up to operation ").value_or(0);
    has_count_ = true;
    sets_.emplace_back(*ranks, count_);
  } else if (ranks && text.find(" ranks have not launched any operations") != text.npos) {
    count_ = 0;
    has_count_ = true;
    sets_.emplace_back(*ranks, count_);
  } else if (auto rank = number_after(text, "Rank "); rank && text.starts_with("Rank ") && !communicator_.empty()) {
    take_rank(text, static_cast<uint32_t>(*rank));
  }
}

void ras_text_reader::take_rank(std::string_view line, uint32_t rank) {
  auto& member = to_.communicators[communicator_].members[rank];
  if (line.find("on node ") != line.npos)
    member.process = process_in(line);
  member.created = true;
  member.source = source();
  auto count = number_after(line, "has launched up to operation ");
  if (line.find("has not launched any operations") != line.npos)
    count = 0;
  if (!count && has_count_)
    count = count_;
  if (count && !operation_.empty()) {
    to_.counts.push_back({communicator_, operation_, rank, *count});
    named_[rank] = *count;
  } else if (problem_ == "INCOMPLETE" || problem_ == "ERROR" || line.find(" reported ") != line.npos) {
    to_.notes.push_back(
      {{},
       member.process,
       {problem_ == "INCOMPLETE" ? rank_note::kind::lost : rank_note::kind::failed, std::string{line}, source()}});
  }
}

} // namespace

bool is_ras_text(std::string_view text) {
  auto head = text.substr(0, 4096);
  return head.find("Job summary") != head.npos && head.find("NCCL version ") != head.npos;
}

void read_ras_text(std::string_view text, file_evidence& to) {
  ras_text_reader{text, to}.read();
}

bool is_ras_json(const parsed_dump& dump) {
  return dump.tree.at(dump.root, "communicators").has_value() && dump.tree.at(dump.root, "nccl_version").has_value();
}

caf::error read_ras_json(const parsed_dump& dump, file_evidence& to) {
  auto& tree = dump.tree;
  auto number = [&](std::optional<dump_value> map, std::string_view key) -> int64_t {
    auto x = map ? tree.at(*map, key) : std::nullopt;
    return x && (x->type == kind::integer || x->type == kind::boolean) ? x->integer : 0;
  };
  auto text = [&](dump_value map, std::string_view key) {
    auto x = tree.at(map, key);
    return std::string{x && x->type == kind::text ? tree.text(*x) : std::string_view{}};
  };
  auto list = [&](dump_value map, std::string_view key) {
    auto x = tree.at(map, key);
    return x && x->type == kind::list ? tree.entries(*x) : std::span<const dump_value>{};
  };
  auto all = list(dump.root, "communicators");
  for (size_t i = 0; i < all.size(); ++i) {
    auto id = text(all[i], "hash");
    if (id.empty())
      return malformed(fmt::format("\"communicators\", entry {}: \"hash\" must be a text", i));
    auto& communicator = to.communicators[id + ":" + text(all[i], "secondary_hash")];
    const auto name = id + ":" + text(all[i], "secondary_hash");
    communicator.size = static_cast<uint32_t>(number(all[i], "size"));
    for (auto rank : list(all[i], "ranks")) {
      auto index = static_cast<uint32_t>(number(rank, "rank"));
      auto status = tree.at(rank, "status");
      auto& member = communicator.members[index];
      member.process = {text(rank, "host"), static_cast<uint64_t>(number(rank, "pid"))};
      member.created = number(status, "init_state") == 0;
      member.source = to.name;
      for (auto key : {"init_state", "async_error"})
        if (auto result = number(status, key); result != 0 && result != 7) // 7: in progress
          to.notes.push_back({{},
                              member.process,
                              {rank_note::kind::failed,
                               fmt::format("rank {} of communicator {}: {}", index, id, result_name(result)),
                               to.name}});
      auto counts = tree.at(rank, "collective_counts");
      auto cells = counts && counts->type == kind::map ? tree.entries(*counts) : std::span<const dump_value>{};
      for (size_t j = 0; j + 1 < cells.size(); j += 2)
        if (cells[j].type == kind::text && cells[j + 1].type == kind::integer)
          to.counts.push_back({name, std::string{tree.text(cells[j])}, index,
                               static_cast<uint64_t>(cells[j + 1].integer)});
    }
    for (auto rank : list(all[i], "missing_ranks")) {
      auto index = static_cast<uint32_t>(number(rank, "rank"));
      auto status = tree.at(rank, "status");
      auto& member = communicator.members[index];
      member.process = {text(rank, "host"), static_cast<uint64_t>(number(rank, "pid"))};
      member.created = true;
      member.source = to.name;
      const bool dead = number(status, "considered_dead") != 0;
      to.notes.push_back(
        {{},
         member.process,
         {dead ? rank_note::kind::died : rank_note::kind::lost,
          fmt::format("rank {} of communicator {} is {}", index, id, dead ? "considered dead" : "unresponsive"),
          to.name}});
    }
  }
  return caf::none;
}

} // namespace ringmaster::diagnosis
