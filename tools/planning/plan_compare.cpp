#include "tools/planning/plan_compare.hpp"

#include "messages/errc.hpp"
#include "runtime/text/json_value.hpp"
#include "runtime/text/text_file.hpp"
#include "tools/training/transformer_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ringmaster {

namespace {

/// The best plan of a file that `plan --json` wrote.
struct saved_plan {
  std::string title;
  double seconds = 0, bytes = 0, gpus = 0, tokens_a_second = 0;
  std::vector<std::pair<std::string, double>> seconds_by_part, bytes_by_part;
};

const json_value* find_member(const json_value& x, std::string_view name) {
  for (size_t i = 0; i < x.keys.size(); ++i)
    if (x.keys[i].name == name)
      return &x.entries[i];
  return nullptr;
}

double number_at(const json_value& x, std::string_view name) {
  auto* found = find_member(x, name);
  return found != nullptr ? found->number : 0;
}

std::string text_at(const json_value& x, std::string_view name) {
  auto* found = find_member(x, name);
  return found == nullptr                          ? "?"
         : found->what == json_value::type::text   ? found->text
         : found->what == json_value::type::number ? fmt::format("{:g}", found->number)
                                                   : "?";
}

std::vector<std::pair<std::string, double>> parts_at(const json_value& x, std::string_view name) {
  std::vector<std::pair<std::string, double>> result;
  if (auto* found = find_member(x, name))
    for (size_t i = 0; i < found->keys.size(); ++i)
      result.emplace_back(found->keys[i].name, found->entries[i].number);
  return result;
}

caf::expected<saved_plan> read_plan(const std::string& file) {
  auto text = read_text_file(file);
  if (!text)
    return std::move(text.error());
  auto json = parse_json(*text);
  if (!json)
    return make_error(errc::corrupt, fmt::format("{}: {}", file, render(json.error())));
  auto* best = find_member(*json, "best");
  if (best == nullptr || find_member(*json, "gpus") == nullptr)
    return make_error(errc::corrupt, fmt::format("{} is not what ringmaster plan --json writes", file));
  if (best->entries.empty() || find_member(best->entries.front(), "seconds") == nullptr)
    return make_error(errc::corrupt, fmt::format("{} has no plan of a transformer that fits", file));
  auto& plan = best->entries.front();
  saved_plan x;
  x.title = fmt::format("{} on {} x {} in {}, batch {}: t{} c{} d{} e{} p{}, micro-batch {}, {}, {}",
                        text_at(*json, "model"), text_at(*json, "gpus"), text_at(*json, "system"),
                        text_at(*json, "precision"), text_at(*json, "global_batch"), text_at(plan, "tensor"),
                        text_at(plan, "context"), text_at(plan, "data"), text_at(plan, "expert"),
                        text_at(plan, "pipeline"), text_at(plan, "micro_batch"), text_at(plan, "schedule"),
                        text_at(plan, "sharding"));
  x.gpus = number_at(*json, "gpus");
  x.seconds = number_at(plan, "time_s");
  x.bytes = number_at(plan, "memory_bytes");
  x.tokens_a_second = number_at(plan, "tokens_per_s");
  x.seconds_by_part = parts_at(plan, "seconds");
  x.bytes_by_part = parts_at(plan, "bytes");
  return x;
}

using compared_parts = std::vector<std::pair<std::string, double>>;

double part_of(const compared_parts& all, const std::string& name) {
  auto at = std::ranges::find(all, name, &std::pair<std::string, double>::first);
  return at == all.end() ? 0 : at->second;
}

/// The terms, those that differ most first.
std::string table_of(const compared_parts& a, const compared_parts& b, double unit, const char* unit_name) {
  auto names = a;
  for (auto& [name, x] : b)
    if (std::ranges::find(names, name, &std::pair<std::string, double>::first) == names.end())
      names.emplace_back(name, 0);
  auto more = [&](const std::string& name) { return part_of(b, name) - part_of(a, name); };
  std::ranges::stable_sort(names, std::ranges::greater{}, [&](auto& x) { return std::abs(more(x.first)); });
  auto text = fmt::format("{:<12} {:>12} {:>12} {:>12}\n", unit_name, "A", "B", "B - A");
  for (auto& [name, x] : names)
    if (part_of(a, name) != 0 || part_of(b, name) != 0)
      text += fmt::format("{:<12} {:>12.3f} {:>12.3f} {:>+12.3f}\n", name, part_of(a, name) / unit,
                          part_of(b, name) / unit, more(name) / unit);
  return text;
}

class compare_call final : public command_call {
  void declare(option_table& table) override {
    table.form("A.json B.json");
    table.about(
      "Two results of ringmaster plan --json beside each other: the best of each, and which terms of time and "
      "memory make the difference, the largest first.");
    table.positional("FILE", [this](const std::string& text) { return files_.push_back(text), caf::error{}; })
      .offers_files()
      .many();
  }

  caf::error check() override {
    if (files_.size() == 2)
      return caf::none;
    return make_error(errc::invalid_argument, fmt::format("two files are compared, not {}", files_.size()));
  }

  caf::expected<int> run(const console& to) override {
    auto a = read_plan(files_[0]), b = read_plan(files_[1]);
    if (!a)
      return std::move(a.error());
    if (!b)
      return std::move(b.error());
    fmt::print(to.out,
               "A  {}\nB  {}\n\nB takes {:.3f} of A's time, {:.3f} of its memory, makes {:.3f} of its tokens a "
               "GPU and second\n\n{}\n{}",
               a->title, b->title, b->seconds / a->seconds, b->bytes / a->bytes,
               b->tokens_a_second / b->gpus / (a->tokens_a_second / a->gpus),
               table_of(a->seconds_by_part, b->seconds_by_part, 1, "seconds"),
               table_of(a->bytes_by_part, b->bytes_by_part, giga, "GB"));
    return exit_ok;
  }

  std::vector<std::string> files_;
};

} // namespace

tool_command plan_compare_command() {
  return tool_command::of<compare_call>("plan compare", "what makes the difference between two plans");
}

} // namespace ringmaster
