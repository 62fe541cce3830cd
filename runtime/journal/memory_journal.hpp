#pragma once

#include "runtime/journal/journal_store.hpp"

namespace ringmaster {

/// A journal that keeps the latest records in memory, for tests and demonstrations without a disk.
std::unique_ptr<journal_store> make_memory_journal(const journal_store::options& opts);

} // namespace ringmaster
