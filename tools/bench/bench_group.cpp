#include "tools/bench/bench_group.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/bench/bench_sizes.hpp"
#include "tools/clients/free_devices.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

caf::error fit_sizes(bench_options& x, uint64_t memory_bytes) {
  auto sizes = sizes_of(x);
  ensure(!sizes.empty(), "a bench has at least one size");
  auto fits = [&](uint64_t bytes) {
    auto smaller = x;
    smaller.max_bytes = bytes;
    return memory_for(smaller) <= memory_bytes;
  };
  auto last = std::ranges::find_if(sizes.rbegin(), sizes.rend(), fits);
  if (last == sizes.rbegin())
    return caf::none;
  if (!x.max_bytes_given && last != sizes.rend()) {
    x.max_bytes = *last;
    return caf::none;
  }
  return make_error(
    errc::out_of_memory,
    fmt::format("{} wants {} of memory on each device, and these have {}: {}a larger device.memory-bytes",
                bytes_text(sizes.back()), bytes_text(memory_for(x)), bytes_text(memory_bytes),
                last == sizes.rend() ? "" : fmt::format("--max-bytes {} at most, or ", *last)));
}

caf::expected<bench_options> fit_to_cluster(bench_arguments& arguments, const proto::ClusterInfo& cluster) {
  auto free = free_devices(cluster);
  auto x = arguments.options(static_cast<uint32_t>(std::min<size_t>(free.size(), bench_arguments::devices_max)));
  if (x)
    RETURN_ERROR(fit_sizes(*x, least_memory_bytes(free)));
  return x;
}

} // namespace ringmaster
