#pragma once

#include "runtime/journal/journal_store.hpp"

namespace ringmaster {

/// A journal in a directory. Errors: those of journal_store::open.
caf::expected<std::unique_ptr<journal_store>> open_rocksdb_journal(const journal_store::options& opts);
caf::expected<std::unique_ptr<journal_store>> open_rocksdb_journal_read_only(const std::filesystem::path& dir);

} // namespace ringmaster
