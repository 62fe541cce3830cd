#pragma once

#include "runtime/schedule.hpp"
#include "tools/option_table.hpp"

#include <optional>
#include <vector>

namespace ringmaster {

/// Which collective a command is about.
struct collective_options {
  static constexpr uint32_t no_peer = UINT32_MAX; ///< Then it is the rank after the root.

  std::optional<proto::CollectiveKind> kind;
  std::string algorithm; ///< Empty: all of the kind's, or the one that is selected.
  uint32_t ranks = 8;
  uint32_t root = 0;
  uint32_t peer = no_peer; ///< SEND_RECV
  uint64_t bytes = 1 << 20;     ///< As nccl-tests count: see `size_count`.
  std::optional<uint64_t> count; ///< Instead of the bytes: elements, as plan_request has them.
  uint64_t chunk_bytes = 0;
  proto::DataType datatype = proto::FLOAT32;
};

/// The kind, --algorithm, --ranks, --root, --peer, --bytes, --chunk and --datatype. `opts` must outlive the table.
void add_collective_options(option_table& table, collective_options& opts, uint32_t ranks_max);

/// What the help says of them.
extern const char* const collective_options_help;

/// Errors: invalid_argument where no kind was given, where it has no algorithms and for what `check_request` refuses.
caf::expected<plan_request> request_of(const collective_options& opts);

/// The named algorithm, or all of the kind. Errors: as of `find_algorithm`.
caf::expected<std::vector<const algorithm*>> algorithms_of(const collective_options& opts);

} // namespace ringmaster
