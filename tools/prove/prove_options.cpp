#include "tools/prove/prove_options.hpp"

#include "messages/errc.hpp"
#include "runtime/text/comma_list.hpp"
#include "tools/options/collective_options.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

constexpr uint64_t world_size_max = 4096; ///< All schedules of a ring of this size take 5 GB.
constexpr uint64_t list_max = 4096;       ///< Numbers in one option.

/// "3", "1..64", "1..8,16,100".
caf::expected<std::vector<uint64_t>> parse_list(std::string_view text, uint64_t min, uint64_t max) {
  std::vector<uint64_t> result;
  for (auto part : comma_list(text)) {
    auto dots = part.find("..");
    auto first = parse_whole(part.substr(0, dots), min, max);
    auto last = dots == part.npos ? first : parse_whole(part.substr(dots + 2), min, max);
    if (!first || !last || *first > *last || *last - *first >= list_max - result.size())
      return make_error(errc::invalid_argument,
                        fmt::format("\"{}\" is not numbers from {} to {}, at most {} of them, such as 3, 1..64 or "
                                    "2,4,8..16",
                                    text, min, max, list_max));
    for (auto x = *first; x <= *last; ++x)
      result.push_back(x);
  }
  return result;
}

option& add_list(option_table& table, const char* name, std::vector<uint64_t>& target, uint64_t min, uint64_t max) {
  return table.parsed(name, target, [min, max](const std::string& text) { return parse_list(text, min, max); });
}

} // namespace

void prove_options::add_to(option_table& table) {
  constexpr auto count_max = uint64_t{1} << 48;
  table.about(
    "Proves collective algorithms: runs the schedules of all ranks on symbols and checks that every output element is "
    "right, that no rank waits for ever, and that no range is written while it may be read. Compares rounds, elements "
    "and "
    "messages with the algorithm's stated cost. Without a KIND, proves all.");
  add_kind(table, kind);
  offer_algorithms(table.text("--algorithm", algorithm).says("A", "one algorithm, or all"), {"all"});
  add_list(table, "--ranks", ranks, 1, world_size_max)
    .says("LIST", "world sizes, such as 4, 1..64 or 2,4,8..16")
    .otherwise("1 to 64 and samples up to 1024");
  add_list(table, "--count", counts, 0, count_max)
    .says("LIST", "elements")
    .otherwise("several, even and uneven, fewer than ranks and more, and none");
  add_list(table, "--root", roots, 0, world_size_max - 1)
    .says("LIST", "roots")
    .otherwise("all in small worlds, and samples");
  add_hosts_option(table, hosts, "where the ranks lie, for hierarchical algorithms")
    .otherwise("one host and, in worlds of up to 24, several layouts");
  table.flag("--deterministic", deterministic)
    .says("the reductions as a deterministic communicator runs them: that all inputs are added in rank order, by every "
          "algorithm; without --ranks up to 64");
  table.number("--seed", seed, 0).says("N", "the seed of the order of events");
  table.number("--jobs", jobs, 1, 256).says("N", "threads");
  table.file("--schedule", schedule)
    .says("FILE", "proves the schedules in FILE; docs/schedule_format.md describes the format");
  table.file("--write", write)
    .says("FILE", "writes the schedules of one algorithm to FILE, in that format, instead of proving");
  table.flag("--wide", wide)
    .says(
      "shows all columns; lines of at most 100 columns, or of the terminal's, leave out CPU time and cases, in this "
      "order and as far as necessary");
  table.common({"--algorithm", "--ranks", "--count", "--root", "--hosts", "--deterministic", "--jobs", "--schedule",
                "--write", "--wide"});
  table.closing("The exit status is 0 if all proofs hold, 1 if one does not, 2 if the command line is wrong.");
  table.add_example("ringmaster prove all_reduce --algorithm ring --ranks 1..64", "one algorithm");
}

caf::error prove_options::check() const {
  auto limits_cases = kind || algorithm != "all" || !ranks.empty() || !counts.empty() || !roots.empty()
                      || !hosts.empty() || !write.empty();
  if (!schedule.empty() && limits_cases)
    return make_error(errc::invalid_argument,
                      "--schedule FILE says itself what it is: only --seed and --deterministic go with it");
  if (!write.empty() && (!kind || algorithm == "all" || ranks.size() != 1 || counts.size() != 1 || roots.size() > 1))
    return make_error(errc::invalid_argument,
                      "--write FILE writes one: it wants a KIND, --algorithm, --ranks and --count with one value each");
  if (kind && !roots.empty())
    return check_has_root(*kind);
  return caf::none;
}

} // namespace ringmaster
