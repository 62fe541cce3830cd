#pragma once

#include "messages/journal.pb.h"

#include <cstddef>
#include <memory>
#include <string>

namespace ringmaster {

/// The latest records of this process's journal, for the log of a process that aborts because an invariant is broken:
/// they may not have reached the disk. Thread-safe.
class flight_recorder {
public:
  static constexpr size_t records_max = 32;

  /// Of the whole process. Its records are reported before the process aborts.
  static flight_recorder& instance();

  flight_recorder();
  ~flight_recorder();

  void note(const proto::Record& record);
  /// A line for each record, the oldest first; empty if there is none.
  std::string text() const;

private:
  struct ring;
  std::unique_ptr<ring> ring_;
};

} // namespace ringmaster
