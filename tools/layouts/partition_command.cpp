#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/terminal.hpp"
#include "training/data/sample_partition.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>

namespace ringmaster {

namespace {

using training::sample_partition;

struct partition_options {
  std::optional<uint64_t> samples, parts;
  std::optional<std::vector<training::decimal_fraction>> fractions;
  training::python_seed seed{1234};
  bool json = false;
};

/// In the text form; --json has all.
constexpr size_t shown_samples_max = 10, shown_ranks_max = 64;

std::string shortened(std::span<const uint32_t> samples) {
  auto shown = samples.first(std::min(samples.size(), shown_samples_max));
  return fmt::format("{}{}", fmt::join(shown, " "), shown.size() < samples.size() ? " ..." : "");
}

std::string text_of(const partition_options& opts, const sample_partition& found) {
  auto text = fmt::format("{}, shuffled as by random.Random({}) of CPython\n{:>8} {:>12}  {}\n",
                          with_commas(*opts.samples) + (*opts.samples == 1 ? " sample" : " samples"), opts.seed.text(),
                          "rank", "samples", "which");
  const auto shown = std::min<size_t>(found.ranks(), shown_ranks_max);
  for (uint32_t rank = 0; rank < shown; ++rank)
    text += fmt::format("{:>8} {:>12}  {}\n", rank, with_commas(found.of(rank).size()), shortened(found.of(rank)));
  if (shown < found.ranks())
    text += fmt::format("and {} more; --json has all\n", counted(found.ranks() - shown, "rank"));
  if (auto rest = found.left_over(); !rest.empty())
    return text + fmt::format("left over: {}: {}\n", counted(rest.size(), "sample"), shortened(rest));
  return text + "nothing is left over\n";
}

/// Writes all samples, directly as text: a tree of JSON values would take many times the memory. For a large set this
/// takes as long as the shuffle.
class partition_json {
public:
  partition_json(const partition_options& opts, const sample_partition& found, progress& shown)
    : opts_(opts), found_(found), shown_(shown) {}

  std::string text() {
    auto to = std::back_inserter(text_);
    fmt::format_to(to, R"({{"samples":{},"seed":{},"ranks":[)", *opts_.samples, opts_.seed.text());
    for (uint32_t rank = 0; rank < found_.ranks(); ++rank) {
      fmt::format_to(to, R"({}{{"rank":{},"count":{},"samples":)", rank == 0 ? "" : ",", rank, found_.of(rank).size());
      append_list(found_.of(rank));
      text_ += '}';
    }
    ensure(written_ <= *opts_.samples, "each sample is written once");
    text_ += R"(],"left_over":)";
    append_list(found_.left_over());
    ensure(written_ == *opts_.samples, "all samples are written");
    return std::move(text_ += "}\n");
  }

private:
  void append_list(std::span<const uint32_t> samples) {
    text_ += '[';
    for (size_t i = 0; i < samples.size(); ++i) {
      fmt::format_to(std::back_inserter(text_), "{}{}", i == 0 ? "" : ",", samples[i]);
      if (++written_ % (1 << 20) == 0)
        shown_.at((1 + static_cast<double>(written_) / static_cast<double>(*opts_.samples)) / 2);
    }
    text_ += ']';
  }

  const partition_options& opts_;
  const sample_partition& found_;
  progress& shown_;
  std::string text_;
  uint64_t written_ = 0;
};

class partition_call final : public command_call {
  void declare(option_table& table) override {
    auto& x = opts_;
    table.about(
      "Shows which sample goes to which rank in parallel training. The numbers 0 to N - 1 are shuffled like CPython's "
      "random.Random(S).shuffle, then each rank in turn gets its fraction of N, rounded down. Samples that are left "
      "over "
      "are listed. (Training itself divides each global batch exactly, and leaves no samples over.)");
    table.form("--samples N --parts W [options]");
    table.form("--samples N --fractions F,... [options]");
    table.number("--samples", x.samples, 0, training::partitioned_samples_max)
      .says("N", fmt::format("0 to {}", training::partitioned_samples_max))
      .needed();
    table.number("--parts", x.parts, 1, 1 << 20).says("W", "equal parts: 1/W for each of W ranks");
    table.parsed("--fractions", x.fractions, training::parse_fractions)
      .says("F,...", "instead of --parts: the fraction of each rank, such as 0.7,0.2,0.1; at most 1 in total");
    table.parsed("--seed", x.seed, training::python_seed::parse)
      .says("S", "seed of the shuffle, any whole number; its sign is ignored, as in CPython")
      .otherwise(x.seed.text());
    table.flag("--json", x.json).says("one object with every sample; the text shows the first of each rank");
    table.add_example("ringmaster partition --samples 50000 --parts 4 --seed 1234", "four equal parts");
  }

  caf::error check() override {
    if (!opts_.samples)
      return invalid("it takes --samples N; see ringmaster partition --help");
    if (opts_.parts.has_value() == opts_.fractions.has_value())
      return invalid("it takes one of --parts W and --fractions F,...; see ringmaster partition --help");
    TRY(counts, opts_.parts ? training::equal_counts(*opts_.samples, *opts_.parts)
                            : training::counts_by(*opts_.samples, *opts_.fractions));
    counts_ = std::move(*counts);
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    progress shown{"partition"};
    const auto whole = opts_.json ? 0.5 : 1; // the other half is writing
    const sample_partition found{*opts_.samples, opts_.seed, counts_, [&](double part) { shown.at(part * whole); }};
    shown.print(to.out, opts_.json ? partition_json{opts_, found, shown}.text() : text_of(opts_, found));
    return exit_ok;
  }

  partition_options opts_;
  std::vector<uint64_t> counts_;
};

} // namespace

tool_command partition_command() {
  return tool_command::of<partition_call>("partition", "which sample goes to which rank");
}

} // namespace ringmaster
