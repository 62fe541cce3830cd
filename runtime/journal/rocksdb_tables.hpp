#pragma once

#include "messages/ids.hpp"
#include "messages/journal.pb.h"
#include "runtime/journal/record_filter.hpp"
#include "runtime/journal/rocksdb_directory.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

/// Keys have the order of their numbers.
std::string timeline_key(uint64_t index);
std::string operations_key(operation_key operation);

/// Reads the families of a journal's database.
class rocksdb_tables {
public:
  /// Returns false to stop.
  using record_visitor = std::function<bool(uint64_t index, proto::Record& record)>;

  explicit rocksdb_tables(std::unique_ptr<rocksdb_directory> files);

  rocksdb_directory& files() const { return *files_; }

  /// The journal's state, after checking that it agrees with the timeline, which must reach record `durable`.
  /// Errors: corrupt, io_error.
  caf::expected<proto::JournalState> load(uint64_t durable) const;

  /// Visits the records within `bounds` after index `after`; the newest first if `backward`. Errors: corrupt (one is
  /// missing or cannot be parsed), io_error.
  caf::error scan(const proto::JournalState& bounds, bool backward, uint64_t after, const record_visitor& visit) const;

  caf::expected<std::optional<proto::OperationState>> operation(operation_key key) const;
  caf::expected<std::vector<proto::OperationState>> operations() const;

private:
  std::unique_ptr<rocksdb_directory> files_;
};

} // namespace ringmaster
