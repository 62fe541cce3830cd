#include "runtime/configuration/options.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/configuration/routes.hpp"
#include "runtime/reduction/datatypes.hpp"
#include "runtime/text/comma_list.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/text/utf8.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <set>
#include <utility>

namespace ringmaster {

namespace {

using namespace std::chrono_literals;

constexpr uint64_t ns(options::duration x) {
  return static_cast<uint64_t>(x.count());
}

constexpr uint64_t kib = 1ull << 10, gib = 1ull << 30, tib = 1ull << 40;
constexpr uint64_t rate_max = 1'000'000'000'000'000; // bytes a second
constexpr uint64_t shortest = ns(1ms), hour = ns(1h), day = ns(24h);

std::string text_of(options::duration x) {
  constexpr std::pair<int64_t, const char*> units[] = {
    {60'000'000'000, "min"}, {1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}, {1, "ns"}};
  for (auto [size, name] : units)
    if (x.count() != 0 && x.count() % size == 0)
      return fmt::format("{}{}", x.count() / size, name);
  return "0s";
}

std::string text_of(const std::string& x) {
  return fmt::format("\"{}\"", x);
}
std::string text_of(const std::vector<std::string>& xs) {
  std::vector<std::string> quoted;
  for (const auto& x : xs)
    quoted.push_back(text_of(x));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}
std::string text_of(uint64_t x) {
  return fmt::to_string(x);
}
std::string text_of(std::same_as<bool> auto x) {
  return x ? "true" : "false";
} // no other number is one

bool in_range(const option_entry& entry, uint64_t x) {
  return x >= entry.min && x <= entry.max;
}
bool is_allowed(const option_entry& entry, uint64_t x) {
  return in_range(entry, x);
}
bool is_allowed(const option_entry&, std::same_as<bool> auto) {
  return true;
}
bool is_allowed(const option_entry& entry, options::duration x) {
  return x.count() >= 0 && in_range(entry, ns(x));
}
bool is_allowed(const option_entry&, const std::vector<std::string>&) {
  return true;
}
bool is_allowed(const option_entry& entry, const std::string& x) {
  return entry.words.empty() || std::find(entry.words.begin(), entry.words.end(), x) != entry.words.end();
}

caf::error refuse(std::string_view key, const std::string& value, std::string_view allowed) {
  return make_error(errc::invalid_config, fmt::format("{} is {}; it must be {}", key, value, allowed));
}

caf::error validate_cluster(const std::vector<std::string>& devices) {
  std::set<device_id> ids;
  for (const auto& text : devices) {
    auto device = parse_cluster_device(text);
    if (!device)
      return make_error(errc::invalid_config, "cluster.devices: " + render(device.error()));
    if (!ids.insert(device->id).second)
      return make_error(errc::invalid_config,
                        fmt::format("cluster.devices: device {} appears twice; each id must be unique",
                                    device->id.value));
  }
  return caf::none;
}

std::vector<std::string_view> route_words() {
  std::vector<std::string_view> result{"auto"};
  for (auto& x : route_table)
    result.push_back(x.name);
  return result;
}

} // namespace

std::vector<option_entry> option_entries(options& x) {
  using text = std::string_view;
  const auto bytes = [](text section, text key, uint64_t* value, text purpose, uint64_t min, uint64_t max) {
    return option_entry{section, key, value, purpose, min, max, {}, option_entry::unit::bytes};
  };
  const auto rate = [](text section, text key, uint64_t* value, text purpose) {
    return option_entry{section, key, value, purpose, 1, rate_max, {}, option_entry::unit::bytes_a_second};
  };
  const auto words = [](text section, text key, std::string* value, text purpose, auto... allowed) {
    return option_entry{section, key, value, purpose, 0, 0, {allowed...}};
  };
  return {
    {"device", "count", &x.device.count, "devices of this process", 0, 1024},
    bytes("device", "memory-bytes", &x.device.memory_bytes, "memory of each device", 4 * kib, tib),
    {"device", "streams", &x.device.streams, "streams of each device", 1, 64},
    {"device", "memory-dir", &x.device.memory_dir, "directory of the memory files; empty: a new one in /dev/shm"},
    {"transfers", "timeout", &x.transfers.timeout, "how long one end of a transfer waits for the other", shortest,
     hour},
    bytes("transfers", "slice-bytes", &x.transfers.slice_bytes,
          "bytes that a stream copies before it checks its mailbox", 64, gib),
    {"route", "use", &x.route.use,
     "how blocks travel: directly from memory to memory, over bulk connections, in messages, or (auto) the shortest "
     "available way",
     0, 0, route_words()},
    bytes("route", "chunk-bytes", &x.route.chunk_bytes, "size of a message with data", 64, gib),
    {"route", "credits", &x.route.credits, "chunks in flight for one block", 1, 1024},
    {"link", "addresses", &x.link.addresses,
     "addresses for bulk connections; none: the node's own; \"all\": all addresses of the host"},
    {"link", "port", &x.link.port, "port for bulk connections; 0: any free one", 0, 65535},
    {"link", "connections", &x.link.connections, "bulk connections between two processes, for each address", 1, 64},
    bytes("link", "eager-bytes", &x.link.eager_bytes,
          "blocks up to this size travel with their offer if their memory cannot be read", 0, 1024 * kib),
    {"link", "checksums", &x.link.checksums, "adds a checksum to bulk data, besides TCP's"},
    {"link", "silence", &x.link.silence, "a bulk connection that is silent for this long is made again", shortest,
     hour},
    {"link", "connect-timeout", &x.link.connect_timeout, "limit for making a bulk connection", shortest, ns(1min)},
    words("communicator", "policy", &x.communicator.policy, "what happens when a device is lost", "shrink", "replace",
          "abort"),
    {"communicator", "deterministic", &x.communicator.deterministic,
     "reductions add in rank order, by every algorithm"},
    {"communicator", "spare-timeout", &x.communicator.spare_timeout, "how long a lost device's place waits for a spare",
     shortest, day},
    {"communicator", "operation-timeout", &x.communicator.operation_timeout,
     "an operation without progress for this long fails", shortest, day},
    {"suspicion", "interval", &x.suspicion.interval, "time between two progress requests", shortest, ns(1min)},
    {"suspicion", "idle-interval", &x.suspicion.idle_interval,
     "the same for devices with nothing in flight; 0: these are not asked", 0, ns(1min)},
    {"suspicion", "late-after", &x.suspicion.late_after, "an answer that takes longer is late", shortest, hour},
    {"suspicion", "pause-max", &x.suspicion.pause_max, "a process that is silent for less has only paused", shortest,
     hour},
    {"suspicion", "late", &x.suspicion.late, "this number of late answers ...", 1, 64},
    {"suspicion", "window", &x.suspicion.window, "... among this number of latest answers is a hang", 1, 64},
    {"supervisor", "restarts-max", &x.supervisor.restarts_max, "restarts before a supervisor gives up", 0, 1000},
    {"supervisor", "period", &x.supervisor.period, "... within this time", shortest, day},
    {"costs", "operation", &x.costs.operation, "between processes: time of an operation", 0, ns(1min)},
    {"costs", "latency", &x.costs.latency, "between processes: time of a message", 0, ns(1min)},
    rate("costs", "bandwidth", &x.costs.bandwidth, "between processes: bytes per second in each direction"),
    {"costs", "message", &x.costs.message,
     "between processes: time of each further message of the process or host that has the most", 0, ns(1min)},
    {"costs", "host-latency", &x.costs.host_latency,
     "between processes: time of a message within a host, if ranks are on several", 0, ns(1min)},
    rate("costs", "host-bandwidth", &x.costs.host_bandwidth,
         "between processes: bytes per second within a host, if ranks are on several"),
    {"costs", "local-operation", &x.costs.local_operation, "within a process: time of an operation", 0, ns(1min)},
    {"costs", "local-rank", &x.costs.local_rank, "within a process: time of an operation for each rank", 0, ns(1min)},
    {"costs", "local-step", &x.costs.local_step, "within a process: time from one round to the next", 0, ns(1min)},
    {"costs", "local-message", &x.costs.local_message, "within a process: time to offer and read a block", 0, ns(1min)},
    rate("costs", "local-bandwidth", &x.costs.local_bandwidth, "within a process: bytes per second that a core copies"),
    rate("costs", "local-reduction-rate", &x.costs.local_reduction_rate,
         "within a process: bytes per second that a core reduces"),
    rate("costs", "local-memory-bandwidth", &x.costs.local_memory_bandwidth,
         "within a process: bytes per second that all cores together read and write beyond their caches"),
    bytes("costs", "local-cache-bytes", &x.costs.local_cache_bytes, "size of all cores' caches", 0, tib),
    {"costs", "joint-operation", &x.costs.shared_memory_operation, "shared-memory operations: time of one", 0,
     ns(1min)},
    {"costs", "joint-rank", &x.costs.joint_rank, "shared-memory operations: time of one for each rank", 0, ns(1min)},
    rate("costs", "joint-bandwidth", &x.costs.joint_bandwidth,
         "shared-memory operations: bytes per second, inputs and outputs of all ranks"),
    {"costs", "training-call", &x.costs.training_call,
     "training in one process: time of a collective in addition to its shared-memory operation", 0, ns(1min)},
    {"costs", "training-receive", &x.costs.training_receive, "training in one process: time of a send and receive", 0,
     ns(1min)},
    {"journal", "dir", &x.journal.dir, "the operation log's directory; empty: it is kept in memory only"},
    words("journal", "sync", &x.journal.sync, "when records are synced to disk", "interval", "always", "never"),
    {"journal", "sync-interval", &x.journal.sync_interval, "how often, with sync=\"interval\"", shortest, hour},
    {"journal", "batch-records", &x.journal.batch_records, "records written together", 1, 1'000'000},
    {"journal", "retain-records", &x.journal.retain_records, "number of records kept; older ones are dropped", 1,
     1'000'000'000'000},
    words("journal", "on-failure", &x.journal.on_failure,
          "whether the coordinator goes on when its store cannot be written", "go-on", "stop"),
    {"coordinator", "host", &x.coordinator.host, "the address on which it listens; \"auto\": the loopback one"},
    {"coordinator", "port", &x.coordinator.port, "the port; 0: any free one", 0, 65535},
    bytes("coordinator", "host-copies-bytes-max", &x.coordinator.host_copies_bytes_max,
          "memory for copies of inputs, for devices that replace lost ones", 0, tib),
    {"coordinator", "request-timeout", &x.coordinator.request_timeout, "how long a request to a device may take",
     shortest, hour},
    words("coordinator", "store", &x.coordinator.store,
          "what `ringmaster coordinator` keeps its store in; with etcd another coordinator can take over", "rocksdb",
          "etcd"),
    {"coordinator", "store-dir", &x.coordinator.store_dir,
     "the directory of what `ringmaster coordinator` must find again when it is restarted; empty: \"store\" in the "
     "journal's directory, and none without one"},
    {"coordinator", "etcd", &x.coordinator.etcd,
     "the members of etcd, each \"http://host:port\" or \"https://host:port\""},
    {"coordinator", "etcd-prefix", &x.coordinator.etcd_prefix,
     "with what the cluster's keys in etcd start; each cluster has its own"},
    {"coordinator", "etcd-lease", &x.coordinator.etcd_lease,
     "how long a coordinator that is silent still leads; another one takes over after that", ns(1s), ns(1min)},
    {"coordinator", "etcd-authority", &x.coordinator.etcd_authority,
     "for https: a PEM file with the authority of the members' certificates; empty: the system's"},
    {"coordinator", "etcd-certificate", &x.coordinator.etcd_certificate,
     "a PEM file with a certificate for etcd; empty: none"},
    {"coordinator", "etcd-key", &x.coordinator.etcd_key, "a PEM file with the certificate's key"},
    {"coordinator", "etcd-user", &x.coordinator.etcd_user, "the user in etcd; empty: none"},
    {"coordinator", "etcd-password-file", &x.coordinator.etcd_password_file, "a file with the user's password"},
    {"coordinator", "rejoin-timeout", &x.coordinator.rejoin_timeout,
     "how long a coordinator that was restarted waits for its nodes; then those that are missing count as lost",
     shortest, hour},
    {"cluster", "devices", &x.cluster.devices, "devices to connect to, each \"id,host,port\""},
    {"node", "name", &x.node.name, "in logs; empty: host and process id"},
    {"node", "listen-host", &x.node.listen_host,
     "the address at which other nodes reach this one; \"auto\": the local one of the route to the coordinator"},
    {"node", "listen-port", &x.node.listen_port, "the port; 0: any free one", 0, 65535},
    {"node", "join", &x.node.join,
     "the coordinator, \"host:port\", or those of all candidates, \"host:port,host:port\"; empty: none"},
    {"node", "join-timeout", &x.node.join_timeout,
     "how long to wait for a silent coordinator and for free devices; a node also waits for a coordinator that is not "
     "running yet",
     shortest, hour},
    {"node", "orphan-timeout", &x.node.orphan_timeout,
     "how long nodes, clients and ranks wait for their coordinator after losing it; 0: not at all", 0, day},
    {"ranks", "join-timeout", &x.ranks.join_timeout, "how long processes that a launcher started wait for each other",
     shortest, day},
    {"ranks", "leave-timeout", &x.ranks.leave_timeout, "... and how long they wait for each other at the end", shortest,
     day},
    bytes("ranks", "meet-bytes", &x.ranks.meet_bytes,
          "ranks of one host exchange inputs up to this size in shared memory, without a message; 0: never", 0,
          64ull << 20),
    {"training", "patience", &x.training.patience,
     "a rank without a message for this long counts as hung, and its step runs again without it", ns(1s), day},
    {"trust", "secret-file", &x.trust.secret_file,
     "the file with the secret that all processes of the cluster share; empty: the one that the coordinator makes"},
    {"trust", "certificate", &x.trust.certificate,
     "the file with this process's certificate, in PEM; empty: connections are not encrypted"},
    {"trust", "key", &x.trust.key, "the file with its key, in PEM"},
    {"trust", "authority", &x.trust.authority,
     "the file with the certificate of the authority that has signed those of all processes, in PEM"},
    words("trust", "bulk", &x.trust.bulk,
          "what certificates do for bulk connections: their data are encrypted, or only protected against changes",
          "encrypted", "authenticated"),
    {"trust", "insecure", &x.trust.insecure,
     "requires no secret: every process that can connect may use and stop the cluster"},
    words("log", "level", &x.log.level, "the least severe messages that are written", "trace", "debug", "info", "warn",
          "error", "off"),
    words("log", "format", &x.log.format,
          "\"text\": a line with date, time and level; \"json\": an object a line, for programs that collect logs",
          "text", "json"),
  };
}

std::string allowed_text(const option_entry& entry) {
  if (std::holds_alternative<options::duration*>(entry.value))
    return fmt::format("a duration from {} to {}", text_of(options::duration{entry.min}),
                       text_of(options::duration{entry.max}));
  if (std::holds_alternative<std::vector<std::string>*>(entry.value))
    return "a list of texts in double quotes";
  if (std::holds_alternative<bool*>(entry.value))
    return "true or false";
  if (entry.counted_in == option_entry::unit::bytes)
    return fmt::format("a size from {} to {}, such as \"64K\"", size_text(entry.min), size_text(entry.max));
  if (entry.counted_in == option_entry::unit::bytes_a_second)
    return "a bandwidth such as \"50GB/s\" or \"400Gbps\", or a number of bytes a second";
  if (!std::holds_alternative<std::string*>(entry.value))
    return fmt::format("an integer from {} to {}", entry.min, entry.max);
  if (entry.words.empty())
    return "a text in double quotes";
  std::vector<std::string> quoted;
  for (auto word : entry.words)
    quoted.push_back(fmt::format("\"{}\"", word));
  return choice_text(quoted);
}

caf::expected<uint64_t> parse_counted(option_entry::unit counted_in, std::string_view text) {
  auto plain = std::all_of(text.begin(), text.end(), [](char x) { return x >= '0' && x <= '9'; });
  if (counted_in != option_entry::unit::bytes_a_second || plain)
    return parse_bytes(text);
  TRY(rate, parse_bandwidth(text));
  return static_cast<uint64_t>(std::llround(*rate));
}

std::string value_text(const option_entry& entry) {
  return std::visit([](const auto* value) { return text_of(*value); }, entry.value);
}

caf::error validate(const options& opts) {
  auto copy = opts;
  for (const auto& entry : option_entries(copy))
    if (!std::visit([&](const auto* value) { return is_allowed(entry, *value); }, entry.value))
      return refuse(fmt::format("{}.{}", entry.section, entry.key), value_text(entry), allowed_text(entry));
  if (opts.suspicion.late > opts.suspicion.window)
    return refuse("suspicion.late", text_of(uint64_t{opts.suspicion.late}),
                  fmt::format("at most suspicion.window, which is {}", opts.suspicion.window));
  for (auto [key, bytes] : {std::pair{"transfers.slice-bytes", opts.transfers.slice_bytes},
                            std::pair{"route.chunk-bytes", opts.route.chunk_bytes}})
    if (bytes % element_bytes_max != 0) // blocks are divided there, and elements must not be
      return refuse(key, text_of(bytes), fmt::format("a multiple of {}", element_bytes_max));
  if (opts.coordinator.host.empty())
    return refuse("coordinator.host", "empty", "an address such as \"127.0.0.1\"");
  if (opts.node.listen_host.empty())
    return refuse("node.listen-host", "empty", "an address such as \"127.0.0.1\"");
  if (has_control_characters(opts.node.name))
    return refuse("node.name", "a name with control characters", "a name without control characters, in one line");
  if (!opts.node.join.empty() && !parse_endpoints(opts.node.join))
    return refuse("node.join", text_of(opts.node.join),
                  bracket_advice(opts.node.join).empty()
                    ? "\"host:port\" with a port from 1 to 65535, several of these with commas between them, or empty"
                    : "\"host:port\" (" + bracket_advice(opts.node.join) + "), or empty");
  if (opts.coordinator.store == "etcd" && opts.coordinator.etcd.empty())
    return refuse("coordinator.etcd", "empty",
                  "a list such as [\"http://127.0.0.1:2379\"], as coordinator.store is \"etcd\"");
  if (!opts.coordinator.etcd_prefix.ends_with('/') || has_control_characters(opts.coordinator.etcd_prefix))
    return refuse("coordinator.etcd-prefix", text_of(opts.coordinator.etcd_prefix), "a text that ends with \"/\"");
  return validate_cluster(opts.cluster.devices);
}

} // namespace ringmaster
