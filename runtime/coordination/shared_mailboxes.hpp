#pragma once

#include "messages/ids.hpp"
#include "runtime/mailbox/mailbox_file.hpp"
#include "runtime/memory/memory_directory.hpp"

#include <map>
#include <memory>
#include <optional>

namespace ringmaster {

/// The shared-memory mailboxes in which ranks of communicators run small collectives without a message, one for each
/// communicator's latest epoch. The coordinator makes them, and closes one before anything happens to a rank's device
/// that the ranks do not do themselves: so the ranks' operations are in order with everything else.
class shared_mailboxes {
public:
  /// `slot_bytes`: a rank's largest input; 0: there are no mailboxes.
  explicit shared_mailboxes(uint64_t slot_bytes = 0) : slot_bytes_(slot_bytes) {}

  /// The mailbox of this epoch, made for the first rank that asks. Errors: unreachable if there is none, or it was
  /// closed; io_error.
  caf::expected<proto::MeetingResponse> page_of(communicator_id id, epoch_number epoch, uint32_t ranks);
  /// The ranks of this communicator use messages from now on, until its epoch changes.
  void close(communicator_id id);
  /// The communicator has ended.
  void ended(communicator_id id);
  bool empty() const { return pages_.empty(); }

private:
  struct page {
    epoch_number epoch;
    uint32_t ranks = 0;
    std::unique_ptr<mailbox_file> file; ///< Null: closed.
  };

  caf::expected<std::unique_ptr<mailbox_file>> make(communicator_id id, epoch_number epoch, uint32_t ranks);
  void remove(page& x);

  uint64_t slot_bytes_;
  std::optional<memory_directory> directory_;
  std::map<communicator_id, page> pages_;
};

} // namespace ringmaster
