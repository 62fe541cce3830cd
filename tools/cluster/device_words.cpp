#include "tools/cluster/device_words.hpp"

#include "messages/errc.hpp"
#include "messages/wire_ids.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace ringmaster {

caf::expected<device_id> parse_device(const std::string& text) {
  bool hex = text.starts_with("0x") || text.starts_with("0X");
  auto* begin = text.data() + (hex ? 2 : 0);
  auto* end = text.data() + text.size();
  uint64_t number = 0;
  auto [rest, problem] = std::from_chars(begin, end, number, hex ? 16 : 10);
  if (problem != std::errc{} || rest != end || number == 0)
    return make_error(
      errc::invalid_argument,
      fmt::format("\"{}\" is no device: give its number, such as 0x4 or 4; `ringmaster status` lists devices", text));
  return device_id{number};
}

caf::expected<std::string> device_words(const proto::ClusterInfo& cluster, device_id device) {
  std::vector<uint64_t> there;
  for (auto& x : cluster.devices()) {
    there.push_back(x.metadata().deviceid().value());
    if (there.back() != device.value)
      continue;
    auto result = fmt::format("device 0x{:x}", device);
    for (auto& node : cluster.nodes())
      if (node.node_id() == x.node_id())
        result += fmt::format(" ({})", place_text(node));
    std::vector<std::string> ranks;
    for (auto& group : cluster.communicators())
      if (auto i = std::ranges::find(group.device_ids(), device.value); i != group.device_ids().end())
        ranks.push_back(fmt::format("rank {} of communicator {}", i - group.device_ids().begin(), group.comm_id()));
    return ranks.empty() ? result + ", which is free" : fmt::format("{}, {}", result, fmt::join(ranks, ", "));
  }
  for (auto gone = cluster.gone().rbegin(); gone != cluster.gone().rend(); ++gone)
    if (gone->what() == proto::ClusterInfo::Gone::DEVICE && gone->id() == device.value)
      return make_error(errc::unknown_device, fmt::format("device 0x{:x} is gone: {}", device, gone->cause()));
  if (there.empty())
    return make_error(errc::unknown_device, fmt::format("there is no device 0x{:x}, and no other one", device));
  return make_error(errc::unknown_device,
                    fmt::format("there is no device 0x{:x}; there are 0x{:x}", device, fmt::join(there, " 0x")));
}

} // namespace ringmaster
