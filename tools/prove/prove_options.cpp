#include "tools/prove/prove_options.hpp"

#include "messages/errc.hpp"
#include "tools/options/collective_options.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

constexpr uint64_t world_size_max = 4096; ///< All schedules of a ring of so many ranks take 5 GB.
constexpr uint64_t list_max = 4096;       ///< Numbers in one option.

/// "3", "1..64", "1..8,16,100".
caf::expected<std::vector<uint64_t>> parse_list(std::string_view text, uint64_t min, uint64_t max) {
  std::vector<uint64_t> result;
  for (size_t begin = 0; begin <= text.size();) {
    auto end = std::min(text.find(',', begin), text.size());
    auto part = text.substr(begin, end - begin);
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
    begin = end + 1;
  }
  return result;
}

void add_list(option_table& table, const char* name, std::vector<uint64_t>& target, uint64_t min, uint64_t max) {
  table.parsed(name, target, [min, max](const std::string& text) { return parse_list(text, min, max); });
}

caf::error check(const prove_options& opts) {
  auto limits_cases = opts.kind || opts.algorithm != "all" || !opts.ranks.empty() || !opts.counts.empty()
                      || !opts.roots.empty() || !opts.write.empty();
  if (!opts.schedule.empty() && limits_cases)
    return make_error(errc::invalid_argument,
                      "--schedule FILE says itself what it is: only --seed and --deterministic go with it");
  if (!opts.write.empty()
      && (!opts.kind || opts.algorithm == "all" || opts.ranks.size() != 1 || opts.counts.size() != 1
          || opts.roots.size() > 1))
    return make_error(errc::invalid_argument,
                      "--write FILE writes one: it wants a KIND, --algorithm, --ranks and --count with one value each");
  if (opts.kind && !opts.roots.empty())
    return check_has_root(*opts.kind);
  return caf::none;
}

} // namespace

caf::expected<prove_options> parse_prove_options(std::span<const std::string> args) {
  constexpr auto count_max = uint64_t{1} << 48;
  prove_options opts;
  option_table table{"prove"};
  add_kind(table, opts.kind);
  table.text("--algorithm", opts.algorithm);
  add_list(table, "--ranks", opts.ranks, 1, world_size_max);
  add_list(table, "--count", opts.counts, 0, count_max);
  add_list(table, "--root", opts.roots, 0, world_size_max - 1);
  table.number("--seed", opts.seed, 0);
  table.number("--jobs", opts.jobs, 1, 256);
  table.flag("--deterministic", opts.deterministic);
  table.text("--schedule", opts.schedule);
  table.text("--write", opts.write);
  if (auto problem = table.read(args))
    return problem;
  opts.help = table.help();
  if (!opts.help)
    if (auto problem = check(opts))
      return problem;
  return opts;
}

const std::string_view prove_usage = R"(ringmaster prove [KIND] [options]

Proves collective algorithms: walks the schedules of all ranks on symbols and says whether every output element holds
what it must, whether a rank may wait for ever, and whether a range is written while it may still be read. Compares
rounds, elements and messages with what the algorithm says that it costs. Without a KIND, all of them.

  KIND               all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter, barrier,
                     send_recv
  --algorithm A      one algorithm, or all (the default)
  --ranks LIST       world sizes, such as 4, 1..64 or 2,4,8..16; without it 1 to 64 and samples up to 1024
  --count LIST       elements, also without; without it several, even and uneven, fewer than ranks and more
  --root LIST        roots; without it all in small worlds, and samples
  --deterministic    the reductions as a deterministic communicator runs them: that all inputs are added in rank order,
                     by every algorithm; without --ranks up to 64
  --seed N           of the order of events (1)
  --jobs N           threads (2)
  --schedule FILE    prove the schedules in FILE; docs/schedule_format.md has the format
  --write FILE       write the schedules of one algorithm to FILE, in that format, and prove nothing
  --help             this text

Ends with status 0 if all proofs hold, 1 if one does not, 2 if the command line is wrong.
)";

} // namespace ringmaster
