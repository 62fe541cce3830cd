#pragma once

#include "runtime/health/restart_intensity.hpp"
#include "runtime/health/suspicion.hpp"
#include "runtime/text/endpoint.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ringmaster {

/// The configuration with its defaults. A member `a.b_c` is the key `b-c` of section `[a]`. option_entries and
/// config/caf-application.conf describe each.
struct options {
  using duration = std::chrono::nanoseconds;

  struct {
    uint32_t count = 8;
    uint64_t memory_bytes = 64ull << 20;
    uint32_t streams = 2;
    std::string memory_dir;
  } device;

  /// Not named "stream", which is a section of CAF.
  struct {
    duration timeout = std::chrono::seconds{15};
    uint64_t slice_bytes = 1ull << 20;
  } transfers;

  struct {
    std::string use = "auto";
    uint64_t chunk_bytes = 1ull << 20;
    uint32_t credits = 4;
  } route;

  /// Bulk connections between hosts.
  struct {
    std::vector<std::string> addresses; ///< Empty: the node's own.
    uint16_t port = 0;
    uint32_t connections = 1;
    uint64_t eager_bytes = 16ull << 10;
    bool checksums = false;
    duration silence = std::chrono::seconds{1};
    duration connect_timeout = std::chrono::milliseconds{1500};
  } link;

  struct {
    std::string policy = "shrink";
    bool deterministic = false;
    duration spare_timeout = std::chrono::seconds{5};
    duration operation_timeout = std::chrono::seconds{30};
  } communicator;

  ringmaster::suspicion::options suspicion;

  restart_intensity::options supervisor;

  /// The costs of operations, by which "auto" selects an algorithm; the defaults are those of a small machine with two
  /// cores. See cost_constants and process_constants. Bandwidths and rates are bytes per second.
  struct {
    duration operation = std::chrono::microseconds{440};
    duration latency = std::chrono::microseconds{410};
    uint64_t bandwidth = 1'200'000'000;
    duration message{};
    duration host_latency = std::chrono::microseconds{30};
    uint64_t host_bandwidth = 8'000'000'000;
    duration local_operation = std::chrono::microseconds{10};
    duration local_rank = std::chrono::nanoseconds{6500};
    duration local_step{};
    duration local_message = std::chrono::nanoseconds{2700};
    uint64_t local_bandwidth = 17'000'000'000;
    uint64_t local_reduction_rate = 32'000'000'000;
    uint64_t local_memory_bandwidth = 39'000'000'000;
    uint64_t local_cache_bytes = 8ull << 20;
    duration shared_memory_operation = std::chrono::microseconds{7};
    duration joint_rank = std::chrono::nanoseconds{320};
    uint64_t joint_bandwidth = 44'000'000'000;
    duration training_call = std::chrono::microseconds{75};
    duration training_receive = std::chrono::microseconds{120};
  } costs;

  struct {
    std::string dir;
    std::string sync = "interval";
    duration sync_interval = std::chrono::milliseconds{100};
    uint32_t batch_records = 256;
    uint64_t retain_records = 1'000'000;
    std::string on_failure = "go-on";
  } journal;

  struct {
    std::string host = "auto"; ///< The loopback address.
    uint16_t port = 7077;
    uint64_t host_copies_bytes_max = 1ull << 30;
    duration request_timeout = std::chrono::seconds{15};
    std::string store = "rocksdb"; ///< Or "etcd".
    std::string store_dir;         ///< Empty: "store" in the journal's directory.
    std::vector<std::string> etcd; ///< Members, see is_etcd_endpoint.
    std::string etcd_prefix = "ringmaster/";
    duration etcd_lease = std::chrono::seconds{2};
    std::string etcd_authority, etcd_certificate, etcd_key, etcd_user, etcd_password_file;
    duration rejoin_timeout = std::chrono::milliseconds{1500};
  } coordinator;

  struct {
    std::vector<std::string> devices; ///< See parse_cluster_device.
  } cluster;

  struct {
    std::string name;
    std::string listen_host = "auto"; ///< The local address of the route to the coordinator.
    uint16_t listen_port = 0;
    std::string join;                                 ///< See parse_endpoints.
    duration join_timeout = std::chrono::seconds{20}; ///< Like middleman.connection-timeout.
    duration orphan_timeout = std::chrono::seconds{60};
  } node;

  /// For a program whose processes are one rank each.
  struct {
    duration join_timeout = std::chrono::seconds{30};
    duration leave_timeout = std::chrono::minutes{5};
    uint64_t meet_bytes = 64ull << 10;
  } ranks;

  struct {
    duration patience = std::chrono::minutes{1}; ///< After this time without a message a rank counts as hung.
  } training;

  /// The secret that every connection between processes proves first, and the certificates with which it is encrypted.
  /// See runtime/trust.
  struct {
    std::string secret_file; ///< Empty: the environment's, or the one that the coordinator makes.
    std::string certificate, key,
      authority;                    ///< PEM files. Empty: the environment's, else connections are not encrypted.
    std::string bulk = "encrypted"; ///< What certificates do for bulk connections.
    bool insecure = false;
  } trust;

  struct {
    std::string level = "info";
    std::string format = "text";
  } log;
};

/// One key: its member, its allowed values and its purpose.
struct option_entry {
  /// The unit in which a number may be written: "64K", "10GB/s".
  enum class unit : uint8_t { none, bytes, bytes_a_second };
  using value_pointer
    = std::variant<bool*, uint16_t*, uint32_t*, uint64_t*, options::duration*, std::string*, std::vector<std::string>*>;

  std::string_view section;
  std::string_view key;
  value_pointer value;
  std::string_view purpose;
  uint64_t min = 0; ///< For a number, or a duration in ns.
  uint64_t max = UINT64_MAX;
  std::vector<std::string_view> words{}; ///< The allowed texts; empty: any text.
  unit counted_in = unit::none;
};

/// All keys, with pointers into `target`, which must outlive them.
std::vector<option_entry> option_entries(options& target);

/// "an integer from 1 to 64", "a duration from 1ms to 60min", "\"memory\" or \"messages\""
std::string allowed_text(const option_entry& entry);

/// The number of bytes in a configured text. Errors: invalid_argument.
caf::expected<uint64_t> parse_counted(option_entry::unit counted_in, std::string_view text);

/// The value in the syntax of the configuration file: 100ms, "shrink", ["1,localhost,7080"].
std::string value_text(const option_entry& entry);

/// Errors: invalid_config, naming the key, its value and what is allowed.
caf::error validate(const options& opts);

} // namespace ringmaster
