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
  /// A new file, zeroed, with its disk space allocated. Errors: io_error.
  static caf::expected<std::unique_ptr<mailbox_file>> make(const std::filesystem::path& file, uint64_t bytes);
  /// Another process's file. Errors: unreachable, where it is on another host or another file has its name here.
  static caf::expected<std::unique_ptr<mailbox_file>> reach(const proto::MeetingResponse& place, uint64_t bytes);

  mailbox_file(const mailbox_file&) = delete;
  mailbox_file& operator=(const mailbox_file&) = delete;
  ~mailbox_file();

  std::byte* data() const noexcept { return mapping_; }
  /// The file was cut, or its file system is gone: its contents mean nothing.
  bool damaged() const noexcept { return guard_.struck(); }
  /// Writes its place for `reach`.
  void tell(proto::MeetingResponse& place) const;
  /// No process can map it from now on; those that have mapped it keep it.
  void remove() const;

private:
  mailbox_file(std::filesystem::path file, std::byte* mapping, uint64_t bytes);

  std::filesystem::path file_;
  std::byte* mapping_;
  uint64_t bytes_;
  mapping_guard guard_;
};

} // namespace ringmaster
