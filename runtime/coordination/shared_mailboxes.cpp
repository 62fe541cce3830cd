#include "runtime/coordination/shared_mailboxes.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/mailbox/shared_mailbox.hpp"

#include <fmt/format.h>

namespace ringmaster {

caf::expected<proto::MeetingResponse> shared_mailboxes::page_of(communicator_id id, epoch_number epoch,
                                                                uint32_t ranks) {
  auto no = [&](std::string_view why) {
    return make_error(errc::unreachable,
                      fmt::format("the ranks of communicator {} have no shared-memory mailbox: {}", id, why));
  };
  if (slot_bytes_ == 0)
    return no("ranks.meet-bytes is 0, or route.use \"messages\"");
  if (ranks > shared_mailbox::ranks_max)
    return no(fmt::format("there are {} of them, and a mailbox has at most {}", ranks, shared_mailbox::ranks_max));
  auto& known = pages_[id];
  if (epoch < known.epoch)
    return no(fmt::format("it is now in epoch {}", known.epoch));
  if (epoch > known.epoch) {
    remove(known);
    known = {epoch, ranks, nullptr};
    TRY(made, make(id, epoch, ranks));
    known.file = std::move(*made);
  }
  if (!known.file)
    return no("its devices are also used by calls other than its ranks'");
  if (ranks != known.ranks)
    return no(fmt::format("epoch {} has {} ranks, not {}", epoch, known.ranks, ranks));
  ensure(known.epoch == epoch, "a mailbox is of its communicator's latest epoch");
  proto::MeetingResponse result;
  result.set_success(true);
  result.set_slot_bytes(slot_bytes_);
  known.file->tell(result);
  return result;
}

caf::expected<std::unique_ptr<mailbox_file>> shared_mailboxes::make(communicator_id id, epoch_number epoch,
                                                                    uint32_t ranks) {
  auto bytes = shared_mailbox::bytes_of(ranks, slot_bytes_);
  if (!directory_) {
    TRY(opened, memory_directory::open({}, bytes));
    directory_.emplace(std::move(*opened));
  }
  return mailbox_file::make(directory_->path() / fmt::format("communicator-{}-{}.page", id, epoch), bytes);
}

void shared_mailboxes::remove(page& x) {
  if (!x.file)
    return;
  shared_mailbox{x.file->data(), x.ranks, slot_bytes_, 0}.close();
  x.file->remove();
  x.file = nullptr;
}

void shared_mailboxes::close(communicator_id id) {
  if (auto known = pages_.find(id); known != pages_.end())
    remove(known->second);
}

void shared_mailboxes::ended(communicator_id id) {
  close(id);
  pages_.erase(id);
}

} // namespace ringmaster
