#include "tools/planning/plan_compare.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/pages/text_table.hpp"
#include "runtime/text/text_file.hpp"
#include "tools/console/page_format.hpp"
#include "tools/simulated_training/transformer_options.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace ringmaster {

namespace {

using training::named_parts;

std::string table_of(const named_parts& a, const named_parts& b, double unit, const char* unit_name) {
  text_table table{{left_column(unit_name), right_column("A"), right_column("B"), right_column("B - A")}};
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
         + page.line(fmt::format(
           "B takes {:.3f} of A's time and {:.3f} of its memory, and makes {:.3f} of its tokens a GPU and second.{}",
           b.seconds / a.seconds, b.bytes / a.bytes, b.tokens_a_second / b.gpus / (a.tokens_a_second / a.gpus),
           simulated_text(a, b)))
         + "\n" + table_of(a.seconds_by_part, b.seconds_by_part, 1, "seconds") + "\n"
         + table_of(a.bytes_by_part, b.bytes_by_part, giga, "GB");
}

class compare_call final : public command_call {
  void declare(option_table& table) override {
    table.form("A.json B.json");
    table.about("Two results of ringmaster plan --json beside each other: the best of each, and which terms of time "
                "and memory make the difference, the largest first.");
    table.positional("FILE", [this](const std::string& text) { return files_.push_back(text), caf::error{}; })
      .offers_files()
      .many();
    table.flag("--json", json_).says("one object: both plans, and the terms that either has");
  }

  caf::error check() override {
    if (files_.size() == 2)
      return caf::none;
    return invalid(fmt::format("two files are compared, not {}", files_.size()));
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

namespace {

constexpr double seconds_max = 1e12, bytes_max = 1e18, tokens_max = 1e18; ///< Of an iteration, a device, a second.
constexpr double rounding = 1e-6;                                         ///< Of the whole, that parts may lack.

/// What a terminal would obey.
bool has_controls(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; });
}

/// Reads members one by one; the first that is wrong is kept, and what is read after it makes no sense.
class plan_reader {
public:
  explicit plan_reader(std::string_view document) : document_(document) {}

  caf::expected<saved_plan> read() {
    TRY(json, parse_json(document_));
    const json_field all{"plan", *json};
    auto best = all.at("best").list();
    if (!best || !all.at("gpus").exists())
      return invalid(all.at("candidates").exists()
                       ? "this plan is by --cost-model lab or puzzles, and only a transformer's are compared"
                       : "this is not what ringmaster plan --json writes");
    if (best->empty() || !best->front().at("seconds").exists())
      return invalid("there is no plan of a transformer that fits");
    read_plan(all, best->front());
    if (problem_)
      return std::move(problem_);
    return std::move(x_);
  }

private:
  template <class T>
  T kept(caf::expected<T> x) {
    if (x)
      return std::move(*x);
    if (!problem_)
      problem_ = std::move(x.error());
    return T{};
  }

  std::string text(const json_field& at) {
    auto x = kept(at.text());
    if (has_controls(x) && !problem_)
      problem_ = at.wrong("a text without control characters");
    return x;
  }

  uint64_t count(const json_field& at) {
    const auto x = kept(at.number(UINT32_MAX));
    if (x == 0 && !problem_)
      problem_ = at.wrong("a whole number from 1 on");
    return x;
  }

  /// Above 0.
  double measured(const json_field& at, double most) {
    const auto x = kept(at.amount(most));
    if (x == 0 && !problem_)
      problem_ = at.wrong("a number above 0");
    return x;
  }

  std::optional<double> simulated(const json_field& at, double most) {
    return at.is_null() ? std::nullopt : std::optional{measured(at, most)};
  }

  /// Which add up to `whole`, a member of that name.
  training::named_parts parts(const json_field& at, double whole, std::string_view name) {
    training::named_parts result;
    double sum = 0;
    for (auto& [key, value] : kept(at.members())) {
      if (has_controls(key) && !problem_)
        problem_ = invalid("a part's name has no control characters");
      result.push_back({key, kept(value.amount(whole * (1 + rounding)))});
      sum += result.back().amount;
    }
    if (!problem_ && std::abs(sum / whole - 1) > rounding)
      problem_ = invalid(fmt::format("plan, entry 0: the parts are {:g} in all, and \"{}\" is {:g}", sum, name, whole));
    return result;
  }

  void read_plan(const json_field& all, const json_field& plan) {
    x_.gpus = static_cast<double>(count(all.at("gpus")));
    x_.title = fmt::format("{} on {} x {} in {}, batch {} of {}:", text(all.at("model")), x_.gpus,
                           text(all.at("system")), text(all.at("precision")), count(all.at("global_batch")),
                           count(all.at("sequence")));
    for (auto& [degree, side] :
         {std::pair{"TP", "tensor"}, {"CP", "context"}, {"DP", "data"}, {"EP", "expert"}, {"PP", "pipeline"}})
      x_.title += fmt::format(" {}{}", degree, count(plan.at(side)));
    const auto chunks = count(plan.at("chunks"));
    const bool in_sequence = kept(plan.at("sequence_parallel").flag());
    const auto schedule = text(plan.at("schedule"));
    x_.title += fmt::format(", micro-batch {}{}{}, recompute {}{}, {}", count(plan.at("micro_batch")),
                            count(plan.at("pipeline")) > 1 ? ", " + schedule : "",
                            chunks > 1 ? fmt::format(", VPP{}", chunks) : "", text(plan.at("recompute")),
                            in_sequence ? ", sequence parallel" : "", text(plan.at("sharding")));
    x_.seconds = measured(plan.at("time_s"), seconds_max);
    x_.bytes = measured(plan.at("memory_bytes"), bytes_max);
    x_.tokens_a_second = measured(plan.at("tokens_per_s"), tokens_max);
    x_.simulated_seconds = simulated(plan.at("simulated_time_s"), seconds_max);
    x_.simulated_bytes = simulated(plan.at("simulated_memory_bytes"), bytes_max);
    x_.seconds_by_part = parts(plan.at("seconds"), x_.seconds, "time_s");
    x_.bytes_by_part = parts(plan.at("bytes"), x_.bytes, "memory_bytes");
  }

  std::string_view document_;
  saved_plan x_;
  caf::error problem_;
};

} // namespace

caf::expected<saved_plan> parse_saved_plan(std::string_view document) {
  return plan_reader{document}.read();
}

caf::expected<saved_plan> read_saved_plan(const std::string& file) {
  return parse_file(file, parse_saved_plan);
}

} // namespace ringmaster
