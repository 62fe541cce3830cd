#include "diagnosis/readers/stack_dump.hpp"

#include "diagnosis/readers/log_lines.hpp"
#include "runtime/text/utf8.hpp"

#include <algorithm>

namespace ringmaster::diagnosis {

namespace {

constexpr size_t processes_max = 1 << 20, stack_max = 4096;

/// "rank 3", "[rank3]", "--rank=3", "RANK=3", "hosta rank_3"
std::optional<uint32_t> rank_in(std::string_view line) {
  const auto lower = lower_case(std::string{line});
  for (size_t at = lower.find("rank"); at != lower.npos; at = lower.find("rank", at + 4)) {
    auto before = std::string_view{lower}.substr(0, at);
    if (before.ends_with("local_") || before.ends_with("local-") || before.ends_with("node_")
        || before.ends_with("node-"))
      continue;
    auto rest = std::string_view{lower}.substr(at + 4);
    rest.remove_prefix(std::min(rest.find_first_not_of(" =:_"), rest.size()));
    if (auto rank = leading_number(rest); rank && *rank < UINT32_MAX)
      return static_cast<uint32_t>(*rank);
  }
  return {};
}

/// "    forward (model.py:17)"
std::optional<stack_frame> frame_of_line(std::string_view line, interned_texts& texts) {
  auto text = trimmed(line);
  auto open = text.rfind(" (");
  if (!text.ends_with(')') || open == text.npos)
    return {};
  auto place = text.substr(open + 2, text.size() - open - 3);
  auto colon = place.rfind(':');
  stack_frame result;
  result.function = texts.of(text.substr(0, open));
  result.file = texts.of(place.substr(0, colon));
  if (colon != place.npos)
    result.line = static_cast<uint32_t>(leading_number(place.substr(colon + 1)).value_or(0));
  return result;
}

} // namespace

size_t read_stack_dump(std::string_view text, file_evidence& to) {
  std::optional<uint32_t> announced;
  std::string_view line;
  auto& part = to.part;
  for (size_t number = 1; take_line(text, line); ++number) {
    if (line.starts_with("Process ") && to.stacks.size() < processes_max) { // "Process 812: python train.py --rank 3"
      auto pid = leading_number(line.substr(8));
      if (!pid || line.find(':') == line.npos)
        continue;
      auto rank = rank_in(line);
      to.stacks.push_back({rank ? rank : announced, {{}, *pid}, {}});
      announced.reset();
    } else if (line.starts_with("Thread ") && !to.stacks.empty()) { // "Thread 812 (idle): "MainThread""
      thread_stack x;
      auto quote = line.find('"');
      x.thread = quote == line.npos ? line.substr(7) : line.substr(quote + 1, line.rfind('"') - quote - 1);
      x.is_main = x.thread == "MainThread";
      x.stack = static_cast<uint32_t>(part.stacks.size());
      x.source = to.name + ", line " + std::to_string(number);
      part.stacks.emplace_back();
      to.stacks.back().threads.push_back(std::move(x));
    } else if (line.starts_with("    ") && !to.stacks.empty() && !to.stacks.back().threads.empty()) {
      if (auto frame = frame_of_line(line, part.texts); frame && part.stacks.back().size() < stack_max)
        part.stacks.back().push_back(*frame);
    } else if (auto rank = line.size() < 200 ? rank_in(line) : std::nullopt) {
      announced = rank;
    }
  }
  std::erase_if(to.stacks, [](auto& x) { return x.threads.empty(); });
  return to.stacks.size();
}

bool read_stack_dump(const parsed_dump& dump, file_evidence& to) {
  using kind = dump_value::kind;
  auto& tree = dump.tree;
  auto threads = dump.root.type == kind::list ? tree.entries(dump.root) : std::span<const dump_value>{};
  auto text = [&](dump_value map, std::string_view key) {
    auto x = tree.at(map, key);
    return x && x->type == kind::text ? tree.text(*x) : std::string_view{};
  };
  auto number = [&](dump_value map, std::string_view key) {
    auto x = tree.at(map, key);
    return x && x->type == kind::integer && x->integer > 0 ? static_cast<uint64_t>(x->integer) : 0;
  };
  for (auto thread : threads) {
    auto frames = tree.at(thread, "frames");
    if (!frames || frames->type != kind::list)
      continue;
    auto pid = number(thread, "pid");
    if (to.stacks.empty() || to.stacks.back().process.pid != pid)
      to.stacks.push_back({{}, {{}, pid}, {}});
    if (auto info = tree.at(thread, "process_info"); info && !to.stacks.back().rank)
      to.stacks.back().rank = rank_in(text(*info, "command_line"));
    auto& stack = to.part.stacks.emplace_back();
    for (auto frame : tree.entries(*frames)) {
      auto file = text(frame, "short_filename");
      if (stack.size() < stack_max)
        stack.push_back({to.part.texts.of(text(frame, "name")),
                         to.part.texts.of(file.empty() ? text(frame, "filename") : file),
                         static_cast<uint32_t>(number(frame, "line"))});
    }
    thread_stack x;
    x.thread = text(thread, "thread_name");
    x.is_main = x.thread == "MainThread";
    x.stack = static_cast<uint32_t>(to.part.stacks.size() - 1);
    x.source = to.name;
    to.stacks.back().threads.push_back(std::move(x));
  }
  return !to.stacks.empty();
}

} // namespace ringmaster::diagnosis
