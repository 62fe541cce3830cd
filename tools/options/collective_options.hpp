#pragma once

#include "runtime/algorithms/registry.hpp"
#include "tools/options/hosts_option.hpp"

#include <optional>
#include <vector>

namespace ringmaster {

/// Which collective a command is about, as it was told: what is empty was not given.
struct collective_options {
  std::optional<proto::CollectiveKind> kind;
  std::string algorithm;
  std::optional<uint32_t> ranks;       ///< 8 if not given.
  std::optional<uint32_t> root;        ///< 0
  std::optional<uint32_t> peer;        ///< The rank after the root.
  std::optional<uint64_t> bytes;       ///< As nccl-tests count: see `size_count`. 1 MiB
  std::optional<uint64_t> count;       ///< Instead of the bytes: elements, as plan_request has them.
  std::optional<uint64_t> chunk_bytes; ///< As the algorithm likes.
  std::optional<uint64_t> chunk;       ///< Instead of the bytes: elements.
  proto::DataType datatype = proto::FLOAT32;
  std::string schedule; ///< A file, whose collective it is.
  /// One number: so many hosts, which the ranks fill evenly; several: how many ranks each has. Empty: one host.
  std::vector<uint64_t> hosts;
};

/// How many ranks a command takes, and how its option is called.
struct ranks_range {
  uint64_t max = 0;
  uint64_t min = 1;
  const char* option = "--ranks";
};

/// What stands without a dash: the kind, once.
option& add_kind(option_table& table, std::optional<proto::CollectiveKind>& kind);
/// The kind, --root, --peer, and the world size. `opts` must outlive the table.
void add_kind_and_ranks(option_table& table, collective_options& opts, const ranks_range& ranks);
/// The same and --algorithm.
void add_collective_options(option_table& table, collective_options& opts, const ranks_range& ranks);
/// --bytes, --chunk and --datatype; the last two.
void add_size_options(option_table& table, collective_options& opts);
void add_chunk_and_datatype(option_table& table, collective_options& opts);

/// What a shell offers for the name of an algorithm: those of the kind that stands there, or of all kinds, each once;
/// and these words beside them.
option& offer_algorithms(option& target, const std::vector<std::string>& words = {});

/// Whether it has elements, and so a size.
bool has_data(proto::CollectiveKind kind);

// Whether an option means anything for the collective. Errors: invalid_argument, naming the option and the kind.
caf::error check_has_root(proto::CollectiveKind kind);
caf::error check_has_peer(proto::CollectiveKind kind);
caf::error check_has_data(const char* option, proto::CollectiveKind kind);
caf::error check_reduces(const char* option, proto::CollectiveKind kind);
/// --chunk. One algorithm of the kind's that has pieces is enough where `algorithm` names none of them.
caf::error check_has_chunks(proto::CollectiveKind kind, const std::string& algorithm);

/// How many elements are so many bytes. Errors: invalid_argument where they are no whole number, naming the option and
/// what would be right, which is never less than `least` bytes, nor than an element.
caf::expected<uint64_t> whole_elements(const char* option, uint64_t bytes, proto::DataType type, uint64_t least = 0);

/// The bytes of one element, or of one for each rank where each has a block of its own.
uint64_t least_bytes(proto::CollectiveKind kind, uint32_t ranks, proto::DataType type);

/// Errors: invalid_argument where so many bytes, of which the request was made, are less than `least_bytes`.
caf::error check_not_empty(const char* option, uint64_t bytes, proto::CollectiveKind kind, const plan_request& request,
                           proto::DataType type);

/// Errors: invalid_argument where no kind was given, for an option that means nothing for the collective, as of
/// `whole_elements` and `check_not_empty`, and for what `check_request` refuses.
caf::expected<plan_request> request_of(const collective_options& opts);

/// The named algorithm, or all of the kind. Errors: as of `find_algorithm`.
caf::expected<std::vector<const algorithm*>> algorithms_of(const collective_options& opts);

} // namespace ringmaster
