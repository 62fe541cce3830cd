#include "tools/options/hosts_option.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/comma_list.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace ringmaster {

namespace {

caf::error invalid_hosts(const std::string& text) {
  return make_error(errc::invalid_argument, "--hosts: " + text);
}

} // namespace

option& add_hosts_option(option_table& table, std::vector<uint64_t>& hosts, const std::string& says) {
  auto read = [](const std::string& text) -> caf::expected<std::vector<uint64_t>> {
    constexpr uint64_t ranks_max = 1 << 16;
    std::vector<uint64_t> result;
    for (auto part : comma_list(text)) {
      auto number = parse_whole(part, 1, ranks_max);
      if (!number)
        return make_error(
          errc::invalid_argument,
          fmt::format("\"{}\" is neither a number of hosts, such as 4, nor the ranks of each, such as 4,4,2", text));
      result.push_back(*number);
    }
    return result;
  };
  return table.parsed("--hosts", hosts, read)
    .says("H", says + "; H is a number of hosts with equal numbers of ranks, or the ranks of each host, such as 4,4,2");
}

caf::expected<std::vector<uint32_t>> hosts_of_ranks(const std::vector<uint64_t>& hosts, uint32_t ranks) {
  auto sizes = hosts;
  if (hosts.size() == 1) {
    if (ranks % hosts[0] != 0)
      return invalid_hosts(fmt::format(
        "{} cannot fill {} evenly{}", counted(ranks, "rank"), counted(hosts[0], "host"),
        ranks == 1 ? "" : fmt::format("; give the ranks of each host, such as {},{}", ranks - ranks / 2, ranks / 2)));
    sizes.assign(hosts[0], ranks / hosts[0]);
  }
  std::vector<uint32_t> result;
  for (uint32_t host = 0; host < sizes.size() && result.size() <= ranks; ++host)
    result.insert(result.end(), std::min<uint64_t>(sizes[host], ranks + 1), host);
  if (!hosts.empty() && result.size() != ranks)
    return invalid_hosts(fmt::format("the hosts have {} together, and there are {}",
                                     counted(std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}), "rank"), ranks));
  ensure(hosts.empty() || result.size() == ranks, "each rank has a host");
  if (sizes.size() < 2)
    result.clear();
  return result;
}

} // namespace ringmaster
