#pragma once

#include "messages/cluster.pb.h"
#include "runtime/memory/mapping_guard.hpp"

#include <caf/expected.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>

namespace ringmaster {

/// The file of a shared_mailbox, mapped. The coordinator makes it, the ranks' processes map it.
class mailbox_file {
public:
  /// A new one, zeroed, with its room on the disk taken. Errors: io_error.
  static caf::expected<std::unique_ptr<mailbox_file>> make(const std::filesystem::path& file, uint64_t bytes);
  /// Somebody else's. Errors: unreachable, where it is on another host or another file has its name here.
  static caf::expected<std::unique_ptr<mailbox_file>> reach(const proto::MeetingResponse& place, uint64_t bytes);

  mailbox_file(const mailbox_file&) = delete;
  mailbox_file& operator=(const mailbox_file&) = delete;
  ~mailbox_file();

  std::byte* data() const noexcept { return mapping_; }
  /// Somebody has cut the file, or removed what it lies on: what is in it means nothing.
  bool damaged() const noexcept { return guard_.struck(); }
  /// Where it is, for `reach`.
  void tell(proto::MeetingResponse& place) const;
  /// Nobody finds it any more; who has mapped it keeps it.
  void remove() const;

private:
  mailbox_file(std::filesystem::path file, std::byte* mapping, uint64_t bytes);

  std::filesystem::path file_;
  std::byte* mapping_;
  uint64_t bytes_;
  mapping_guard guard_;
};

} // namespace ringmaster
