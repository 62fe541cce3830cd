#pragma once

#include <rocksdb/options.h>
#include <rocksdb/status.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace ringmaster {

/// What our RocksDB databases, which are small, have in common: few threads, no background work that they do not need,
/// no log of RocksDB's own, and files for their owner alone. A last change that was cut short was not reported durable
/// and is dropped; any other damage is an error.
rocksdb::DBOptions small_database_options();

/// With its parents. New ones are for their owner only; one that exists keeps its permissions, for it may have other
/// uses.
std::error_code make_private_directory(const std::filesystem::path& wanted);

/// "by process 4711", "by another process" or "by this process", if the database could not be opened because it is
/// locked; else empty.
std::string lock_holder(const rocksdb::Status& status, const std::filesystem::path& dir);

} // namespace ringmaster
