#include "tools/planning/plan_compare.hpp"

#include "messages/errc.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/pages/text_table.hpp"
#include "tools/console/page_format.hpp"
#include "tools/planning/saved_plan.hpp"
#include "tools/simulated_training/transformer_options.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ringmaster {

namespace {

using training::named_parts;

std::string table_of(const named_parts& a, const named_parts& b, double unit, const char* unit_name) {
  text_table table{{{unit_name, text_side::left}, {"A"}, {"B"}, {"B - A"}}};
  for (auto& [name, of_a, of_b] : training::differences(a, b))
    table.add_row({name, fmt::format("{:.3f}", of_a / unit), fmt::format("{:.3f}", of_b / unit),
                   fmt::format("{:+.3f}", (of_b - of_a) / unit)});
  return table.text(page_format::columns_max, "");
}

json_value differences_json(const named_parts& a, const named_parts& b) {
  auto result = json_value::array();
  for (auto& [part, of_a, of_b] : training::differences(a, b))
    result.push_back({{"part", part}, {"a", of_a}, {"b", of_b}});
  return result;
}

json_value json_of(const saved_plan& x) {
  auto or_null = [](const std::optional<double>& number) { return number ? json_value(*number) : json_value{}; };
  return {{"plan", x.title},
          {"time_s", x.seconds},
          {"memory_bytes", x.bytes},
          {"gpus", x.gpus},
          {"tokens_per_s", x.tokens_a_second},
          {"simulated_time_s", or_null(x.simulated_seconds)},
          {"simulated_memory_bytes", or_null(x.simulated_bytes)}};
}

std::string json_of(const saved_plan& a, const saved_plan& b) {
  return json_text({{"a", json_of(a)},
                    {"b", json_of(b)},
                    {"seconds", differences_json(a.seconds_by_part, b.seconds_by_part)},
                    {"bytes", differences_json(a.bytes_by_part, b.bytes_by_part)}})
         + "\n";
}

std::string figures_of(const saved_plan& x) {
  auto text = fmt::format("{:.3f} s, {:.1f} GB", x.seconds, x.bytes / giga);
  if (!x.simulated_seconds || !x.simulated_bytes)
    return text + "; not simulated";
  return text + fmt::format("; simulated {:.3f} s, {:.1f} GB", *x.simulated_seconds, *x.simulated_bytes / giga);
}

std::string simulated_text(const saved_plan& a, const saved_plan& b) {
  if (!a.simulated_seconds || !b.simulated_seconds)
    return "";
  return fmt::format(" Simulated, it takes {:.3f} of A's time.", *b.simulated_seconds / *a.simulated_seconds);
}

/// Its name, its title and its figures.
std::string head_of(char name, const saved_plan& x, const page_format& page) {
  return page.line(fmt::format("{}: {}", name, x.title), 3) + "   " + page.line(figures_of(x));
}

std::string text_of(const saved_plan& a, const saved_plan& b, const page_format& page) {
  return head_of('A', a, page) + head_of('B', b, page) + "\n"
         + page.line(
           fmt::format("B takes {:.3f} of A's time and {:.3f} of its memory, and makes {:.3f} of its tokens a "
                       "GPU and second.{}",
                       b.seconds / a.seconds, b.bytes / a.bytes,
                       b.tokens_a_second / b.gpus / (a.tokens_a_second / a.gpus), simulated_text(a, b)))
         + "\n" + table_of(a.seconds_by_part, b.seconds_by_part, 1, "seconds") + "\n"
         + table_of(a.bytes_by_part, b.bytes_by_part, giga, "GB");
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
    table.flag("--json", json_).says("one object: both plans, and the terms that either has");
  }

  caf::error check() override {
    if (files_.size() == 2)
      return caf::none;
    return make_error(errc::invalid_argument, fmt::format("two files are compared, not {}", files_.size()));
  }

  caf::expected<int> run(const console& to) override {
    auto a = read_saved_plan(files_[0]), b = read_saved_plan(files_[1]);
    if (!a)
      return std::move(a.error());
    if (!b)
      return std::move(b.error());
    fmt::print(to.out, "{}", json_ ? json_of(*a, *b) : text_of(*a, *b, page_format::of_console(false)));
    return exit_ok;
  }

  std::vector<std::string> files_;
  bool json_ = false;
};

} // namespace

tool_command plan_compare_command() {
  return tool_command::of<compare_call>("plan compare", "what makes the difference between two plans");
}

} // namespace ringmaster
