// `ringmaster coordinator` with its store in etcd, for which `ringmaster` starts this program. See
// docs/operations/HIGH_AVAILABILITY.md.
#include "etcd/etcd_metadata_store.hpp"
#include "runtime/text/endpoint.hpp"
#include "runtime/text/own_address.hpp"
#include "tools/cluster/coordinator_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace {

using namespace ringmaster;

caf::expected<std::unique_ptr<metadata_store>> open_shared(const options& opts, bool standby,
                                                           const std::function<bool()>& stop) {
  constexpr std::chrono::seconds of_a_killed_one{1}, for_ever{std::chrono::hours{24 * 365 * 10}};
  auto& its = opts.coordinator;
  etcd_store_options result;
  result.access = {its.etcd, its.etcd_authority, its.etcd_certificate, its.etcd_key, its.etcd_user, its.etcd_password_file};
  result.prefix = its.etcd_prefix;
  result.lease = std::chrono::ceil<std::chrono::seconds>(its.etcd_lease);
  result.name = fmt::format("process {} on {}", ::getpid(), own_host_name());
  result.wait = standby ? for_ever : 2 * result.lease + of_a_killed_one;
  result.stop = stop;
  return open_etcd_store(std::move(result));
}

} // namespace

int main(int argc, char** argv) {
  return coordinator_command(open_shared).run(std::vector<std::string>{argv + 1, argv + argc});
}
