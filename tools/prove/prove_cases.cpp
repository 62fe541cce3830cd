#include "tools/prove/prove_cases.hpp"

#include "messages/errc.hpp"
#include "runtime/text/comma_list.hpp"
#include "tools/options/collective_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

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
      return invalid(
        fmt::format("\"{}\" is not numbers from {} to {}, at most {} of them, such as 3, 1..64 or 2,4,8..16", text, min,
                    max, list_max));
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
  table.about("Proves collective algorithms: runs the schedules of all ranks on symbols and checks that every output "
              "element is right, that no rank waits for ever, and that no range is written while it may be read. "
              "Compares rounds, elements and messages with the algorithm's stated cost. Without a KIND, proves all.");
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
    .says("shows all columns; lines of at most 100 columns, or of the terminal's, leave out CPU time and cases, in "
          "this order and as far as necessary");
  table.common({"--algorithm", "--ranks", "--count", "--root", "--hosts", "--deterministic", "--jobs", "--schedule",
                "--write", "--wide"});
  table.closing("The exit status is 0 if all proofs hold, 1 if one does not, 2 if the command line is wrong.");
  table.add_example("ringmaster prove all_reduce --algorithm ring --ranks 1..64", "one algorithm");
}

caf::error prove_options::check() const {
  auto limits_cases = kind || algorithm != "all" || !ranks.empty() || !counts.empty() || !roots.empty()
                      || !hosts.empty() || !write.empty();
  if (!schedule.empty() && limits_cases)
    return invalid("--schedule FILE says itself what it is: only --seed and --deterministic go with it");
  if (!write.empty() && (!kind || algorithm == "all" || ranks.size() != 1 || counts.size() != 1 || roots.size() > 1))
    return invalid("--write FILE writes one: it wants a KIND, --algorithm, --ranks and --count with one value each");
  if (kind && !roots.empty())
    return check_has_root(*kind);
  return caf::none;
}

namespace {

constexpr uint32_t all_roots_max = 8, small_max = 16, every_world_max = 64, uneven_max = 256;
constexpr uint32_t layouts_max = 24;           ///< Of larger worlds one host is proved.
constexpr uint32_t uneven_all_to_all_max = 64; ///< It has ranks x ranks counts, and each rank's plan may look at all.

std::vector<uint64_t> sorted(std::set<uint64_t> values) {
  return {values.begin(), values.end()};
}

/// One block for each rank, not one for all.
bool has_blocks(proto::CollectiveKind kind) {
  return has_v_variant(kind);
}

std::vector<uint64_t> counts_for(proto::CollectiveKind kind, uint64_t n, const prove_options& opts) {
  if (kind == proto::BARRIER)
    return {0};
  if (!opts.counts.empty())
    return opts.counts;
  if (n > every_world_max)
    return {has_blocks(kind) ? 2 : n + 1};
  if (n > small_max)
    return has_blocks(kind) ? sorted({1, 3}) : sorted({1, n - 1, n + 1, 1000});
  return has_blocks(kind) ? sorted({0, 1, 2, 3, 10}) : sorted({0, 1, 2, n - 1, n, n + 1, 3 * n + 2, 1000});
}

std::vector<std::vector<uint64_t>> v_counts_for(proto::CollectiveKind kind, uint32_t n, const prove_options& opts) {
  auto limit = kind == proto::ALL_TO_ALL ? uneven_all_to_all_max : uneven_max;
  if (!has_v_variant(kind) || !opts.counts.empty() || n > limit)
    return {};
  std::vector<uint64_t> uneven(size_t{n} * (kind == proto::ALL_TO_ALL ? n : 1));
  for (size_t i = 0; i < uneven.size(); ++i)
    uneven[i] = (5 * i + 3 + i / n) % 4; // every fourth is empty
  if (n > small_max)
    return {uneven};
  std::vector<uint64_t> one_only(uneven.size());
  one_only[one_only.size() / 2] = 7;
  return {uneven, one_only};
}

std::vector<uint64_t> roots_for(proto::CollectiveKind kind, uint64_t n, const prove_options& opts) {
  if (!has_root(kind))
    return {0};
  if (!opts.roots.empty())
    return opts.roots;
  if (n > every_world_max)
    return {n / 3};
  if (n > all_roots_max)
    return sorted({0, 1, n / 2, n - 1});
  std::vector<uint64_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// As `plan_request` has them; the first is one host.
std::vector<std::vector<uint32_t>> hosts_for(const algorithm& of, uint32_t n, const prove_options& opts,
                                             caf::error& refused) {
  if (!opts.hosts.empty()) {
    auto told = hosts_of_ranks(opts.hosts, n);
    if (told)
      return {*told};
    refused = std::move(told.error());
    return {};
  }
  std::set<std::vector<uint32_t>> layouts;
  if (of.is.by_hosts && n <= layouts_max && n > 1) {
    std::function<uint32_t(uint32_t)> rules[] = {[](uint32_t rank) { return rank / 2; },
                                                 [](uint32_t rank) { return rank / 3; },
                                                 [](uint32_t rank) { return rank == 0 ? 0u : 1u; },
                                                 [](uint32_t rank) { return rank % 2; },
                                                 [](uint32_t rank) { return rank % 3; },
                                                 [n](uint32_t rank) { return rank < 2 * n / 3 ? 0u : 1u; },
                                                 [](uint32_t rank) { return rank; }};
    for (auto& host_of : rules) {
      std::vector<uint32_t> hosts;
      for (uint32_t rank = 0; rank < n; ++rank)
        hosts.push_back(host_of(rank));
      layouts.insert(std::move(hosts));
    }
  }
  std::vector<std::vector<uint32_t>> result{{}};
  result.insert(result.end(), layouts.begin(), layouts.end());
  return result;
}

std::vector<uint64_t> peers_for(proto::CollectiveKind kind, uint64_t root, uint64_t n) {
  if (kind != proto::SEND_RECV)
    return {0};
  std::set<uint64_t> peers{(root + 1) % n, (root + n - 1) % n, (root + n / 2) % n};
  if (peers.size() > 1)
    peers.erase(root);
  return sorted(std::move(peers));
}

} // namespace

std::vector<uint32_t> prove_worlds(const prove_options& opts) {
  std::set<uint32_t> worlds(opts.ranks.begin(), opts.ranks.end());
  if (worlds.empty()) {
    for (uint32_t n = 1; n <= every_world_max; ++n)
      worlds.insert(n);
    if (!opts.deterministic) // contributions that travel separately grow with the cube of the ranks
      worlds.insert({100, 128, 255, 256, 511, 1000, 1024});
  }
  return {worlds.begin(), worlds.end()};
}

std::vector<plan_request> prove_cases(const algorithm& of, uint32_t world_size, const prove_options& opts,
                                      caf::error& refused) {
  const auto kind = of.kind;
  const auto layouts = hosts_for(of, world_size, opts, refused);
  std::vector<plan_request> result;
  plan_request request{.world_size = world_size};
  auto add = [&] {
    if (auto problem = check_request(kind, request)) {
      refused = std::move(problem);
      return;
    }
    for (const auto& hosts : layouts)
      for (uint64_t chunk : {0, 1, 3})
        if (chunk == 0 || (world_size <= small_max && opts.counts.empty())) {
          result.push_back(request);
          result.back().chunk = chunk;
          result.back().hosts = hosts;
        }
  };
  for (auto root : roots_for(kind, world_size, opts)) {
    request.root = static_cast<uint32_t>(root);
    for (auto peer : peers_for(kind, root, world_size)) {
      request.peer = static_cast<uint32_t>(peer);
      for (auto count : counts_for(kind, world_size, opts)) {
        request.count = count;
        add();
      }
      request.count = 0;
      for (auto& counts : v_counts_for(kind, world_size, opts)) {
        request.counts = std::move(counts);
        add();
      }
      request.counts.clear();
    }
  }
  return result;
}

} // namespace ringmaster
