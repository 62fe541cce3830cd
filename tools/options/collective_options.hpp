#pragma once

#include "runtime/algorithms/registry.hpp"
#include "tools/options/option_table.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

/// --hosts. `says`: its purpose.
option& add_hosts_option(option_table& table, std::vector<uint64_t>& hosts, const std::string& says);
/// By rank, as in `plan_request`; empty if all are on one host. Errors: invalid_argument if the ranks do not fill the
/// hosts.
caf::expected<std::vector<uint32_t>> hosts_of_ranks(const std::vector<uint64_t>& hosts, uint32_t ranks);

/// The collective of a command, as given by its options; empty members were not given.
struct collective_options {
  std::optional<proto::CollectiveKind> kind;
  std::string algorithm;
  std::optional<uint32_t> ranks;       ///< 8 if not given.
  std::optional<uint32_t> root;        ///< 0
  std::optional<uint32_t> peer;        ///< The rank after the root.
  std::optional<uint64_t> bytes;       ///< As nccl-tests count: see `size_count`. Default: 1 MiB
  std::optional<uint64_t> count;       ///< Instead of the bytes: elements, as plan_request has them.
  std::optional<uint64_t> chunk_bytes; ///< Default: the algorithm's.
  std::optional<uint64_t> chunk;       ///< Instead of the bytes: elements.
  proto::DataType datatype = proto::FLOAT32;
  std::string schedule; ///< A file, whose collective it is.
  /// A single number: of hosts with equal numbers of ranks. Several: the ranks of each host. Empty: one host.
  std::vector<uint64_t> hosts;
};

/// The world sizes of a command, and the option's name.
struct ranks_range {
  uint64_t max = 0;
  uint64_t min = 1;
  const char* option = "--ranks";
};

/// The positional argument: a kind.
option& add_kind(option_table& table, std::optional<proto::CollectiveKind>& kind);
/// The kind, --root, --peer, and the world size. `opts` must outlive the table.
void add_kind_and_ranks(option_table& table, collective_options& opts, const ranks_range& ranks);
/// The same, and --algorithm.
void add_collective_options(option_table& table, collective_options& opts, const ranks_range& ranks);
/// --bytes, --chunk and --datatype; or only the last two.
void add_size_options(option_table& table, collective_options& opts);
void add_chunk_and_datatype(option_table& table, collective_options& opts);

/// Completion of algorithm names: those of the given kind, or of all kinds, and `words`.
option& offer_algorithms(option& target, const std::vector<std::string>& words = {});

/// Whether the kind has elements.
bool has_data(proto::CollectiveKind kind);

// Check that an option applies to the collective. Errors: invalid_argument with the option and the kind.
caf::error check_has_root(proto::CollectiveKind kind);
caf::error check_has_peer(proto::CollectiveKind kind);
caf::error check_has_data(const char* option, proto::CollectiveKind kind);
caf::error check_reduces(const char* option, proto::CollectiveKind kind);
/// For --chunk. Without a named algorithm, one of the kind with pieces is enough.
caf::error check_has_chunks(proto::CollectiveKind kind, const std::string& algorithm);

/// The number of elements in `bytes`. Errors: invalid_argument if it is not a whole number, with the option and the
/// nearest valid sizes of at least `least` bytes.
caf::expected<uint64_t> whole_elements(const char* option, uint64_t bytes, proto::DataType type, uint64_t least = 0);

/// The bytes of an element, or of one for each rank if each has a block.
uint64_t least_bytes(proto::CollectiveKind kind, uint32_t ranks, proto::DataType type);

/// Errors: invalid_argument if `bytes`, from which the request was made, are less than `least_bytes`.
caf::error check_not_empty(const char* option, uint64_t bytes, proto::CollectiveKind kind, const plan_request& request,
                           proto::DataType type);

/// Errors: invalid_argument for a missing kind, an option that does not apply to it, and as of `whole_elements`,
/// `check_not_empty` and `check_request`.
caf::expected<plan_request> request_of(const collective_options& opts);

/// The named algorithm, or all of the kind. Errors: as of `find_algorithm`.
caf::expected<std::vector<const algorithm*>> algorithms_of(const collective_options& opts);

} // namespace ringmaster
