#pragma once

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace ringmaster {

/// A key of the store gets this value, or is erased.
struct metadata_change {
  std::string key;
  std::optional<std::string> value; ///< None: erased.
};

/// What a coordinator must find again when it is restarted: keys and values (runtime/metadata/cluster_metadata.hpp says
/// which). It changes when nodes, devices or communicators come and go, never for an operation. One owner; not
/// thread-safe.
class metadata_store {
public:
  using entries = std::map<std::string, std::string>;

  struct options {
    std::filesystem::path dir; ///< Created if missing, for its owner alone.
    bool sync = true;          ///< Whether a commit is on the disk before it returns. Else it survives the end of the
                               ///< process, but not of the machine, except those of numbers that are given once
                               ///< (metadata_key::is_of_run).
  };

  /// In a RocksDB database. Errors: in_use, with the process that has it; corrupt; io_error.
  static caf::expected<std::unique_ptr<metadata_store>> open(const options& opts);
  /// It ends with the process.
  static std::unique_ptr<metadata_store> in_memory();

  virtual ~metadata_store() = default;

  /// Everything in it. Errors: corrupt, io_error.
  virtual caf::expected<entries> load() = 0;
  /// All of these, in their order, or none. Errors: io_error.
  virtual caf::error commit(std::span<const metadata_change> changes) = 0;
  /// Looks whether its files are still where they belong, and writes them anew if not. Errors: io_error.
  virtual caf::error look_after() = 0;
  /// Whether files are where they belong, for a quick look now and then. Any thread.
  virtual bool has_files() const { return true; }
  /// Whether `commit` waits for a disk or a network.
  virtual bool waits() const = 0;

  // A store that several coordinators share has one leader among them, which alone may change it. What follows is for
  // such a store, and has no effect on others.

  virtual bool is_shared() const { return false; }
  /// Whether it is certain that no other coordinator leads. While it is not, the coordinator serves nothing. Any
  /// thread.
  virtual bool holds() const { return true; }
  /// Set once this coordinator leads no longer, for good. Errors: aborted. Any thread.
  virtual caf::error deposed() const { return caf::none; }
  /// Says in the store where this coordinator listens, "host:port".
  virtual void announce(const std::string&) {}
  /// Lets another coordinator lead at once; nothing is committed from then on.
  virtual void hand_over() {}

  /// Its owner notes how its latest use ended, for other threads.
  void note(const caf::error& problem);
  /// What is wrong with it; empty: nothing. Any thread.
  std::string trouble() const;

private:
  mutable std::mutex mutex_;
  std::string trouble_;
};

} // namespace ringmaster
