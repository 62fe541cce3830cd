#pragma once

#include "actors/scheduling/awake_clock.hpp"
#include "client/work.hpp"
#include "messages/cluster.pb.h"
#include "runtime/mailbox/mailbox_file.hpp"
#include "runtime/mailbox/shared_mailbox.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/reduction/reducer.hpp"
#include "runtime/schedule/collective.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace ringmaster {

class rank_mailbox;

/// The device of a process that plays one rank: what its handles, of several communicators, have in common.
struct own_device {
  std::shared_ptr<mapped_memory> memory;
  std::mutex guard;
  rank_mailbox* meets = nullptr;                ///< Whose call has come to its page, and is not settled.
  std::atomic<uint64_t> messages_under_way = 0; ///< Calls of all handles.
};

/// A rank's way to make small collectives without a message, where the ranks are processes of one host: it meets the
/// others on a page of shared memory (runtime/mailbox/shared_mailbox.hpp). A call that cannot be made so, or for which
/// somebody is late, goes by messages instead, on all ranks; so what calls promise holds for both. Calls of one handle
/// are in order, and with those of others on the device.
///
/// Nothing runs in the background: a call goes on while its rank calls or waits, and every `look_every` (`tick`).
class rank_mailbox : public work_driver, public std::enable_shared_from_this<rank_mailbox> {
public:
  /// Makes a call by messages.
  using by_messages = std::function<void(proto::RankCall, std::shared_ptr<work::state>)>;
  /// Aborts the communicator, since its ranks may not have met the same calls.
  using abort = std::function<void(std::string reason)>;
  using clock = awake_clock;

  static constexpr auto look_every = std::chrono::milliseconds{50};
  static constexpr auto report_every = std::chrono::seconds{1};

  struct place {
    communicator_id communicator;
    epoch_number epoch;
    uint32_t rank = 0;
    uint32_t ranks = 0;
  };

  /// Errors: unreachable, where the page cannot be mapped here; in_use, where the rank has another handle.
  static caf::expected<std::shared_ptr<rank_mailbox>> join(const proto::MeetingResponse& page, const place& where,
                                                           std::shared_ptr<own_device> device, by_messages otherwise,
                                                           abort give_up);
  /// Makes the call, one way or the other; its work ends `calls`.
  void call(proto::RankCall x, std::shared_ptr<work::state> calls);
  /// A call of another handle of the device is about to go by messages: settles what is open, and counts it.
  static void make_way(const std::shared_ptr<own_device>& device, work::state& calls);
  /// The handle is going; a call that is not settled goes by messages.
  void leave();

  /// Calls that were made so.
  uint64_t calls_met() const { return met_calls_; }

  // -- work_driver --
  void look(work::state& calls) override;
  void wait(work::state& calls, clock::time_point until) override;

  /// Whether `tick` is to be called, `look_every` from now; once true, not again before it has been.
  bool wants_ticks();
  /// Settles a call for which nobody waits. From any thread. Returns what `wants_ticks` says then.
  bool tick();
  /// Rank 0: what has been done since the last report, where it is time for one.
  std::optional<proto::MetReport> report(bool at_once);

private:
  /// A call that has come to the page.
  struct attempt {
    proto::RankCall call;
    plan_request request; ///< What it asks of this rank.
    std::shared_ptr<work::state> calls;
    uint64_t number = 0;
    shared_mailbox::fingerprint what;
    clock::time_point began, gives_up;
  };

  rank_mailbox(std::unique_ptr<mailbox_file> file, const place& where, uint64_t slot_bytes,
               std::shared_ptr<own_device> device, by_messages otherwise, abort give_up);

  bool can_meet(const proto::RankCall& x, const plan_request& request) const;
  /// Copies this rank's input into its slot. False: the call is wrong, or the device's memory, which messages say
  /// better.
  bool bring_input(const proto::RankCall& x, const plan_request& request, uint64_t number);
  void send(proto::RankCall x, std::shared_ptr<work::state> calls);
  /// The page was cut: what others have met of this rank's call it cannot know, and where it made that again by
  /// messages, they could take it for their next one. So no call of this handle is made any more, and the communicator
  /// is aborted. Errors: aborted.
  caf::error page_lost();
  // All with the device's guard held.
  bool look();
  /// Ends the attempt, unless it is open. Returns whether it has.
  bool settle(shared_mailbox::outcome how);
  void look_until_settled(clock::time_point until);
  void sleep_until(clock::time_point until);
  void write_output(const attempt& x);
  void count(const attempt& x, uint64_t bytes);

  place where_;
  uint64_t slot_bytes_;
  std::shared_ptr<own_device> device_;
  by_messages otherwise_;
  abort give_up_; ///< Null once it was called.
  std::unique_ptr<mailbox_file> file_;
  shared_mailbox page_;
  uint64_t number_ = 0; ///< Of the latest call.
  std::optional<attempt> attempt_;
  std::shared_ptr<std::atomic<bool>> stale_; ///< The communicator has gone on to another epoch.
  std::optional<reducer> combine_;           ///< Of the latest call that reduced.
  std::vector<const std::byte*> inputs_;
  std::atomic<bool> open_ = false; ///< There is an attempt.
  std::atomic<bool> ticking_ = false;
  std::atomic<uint64_t> met_calls_ = 0;
  std::atomic<uint64_t> unreported_ = 0;
  std::mutex report_guard_;
  proto::MetReport met_; ///< Since the last report.
  clock::time_point report_at_;
};

} // namespace ringmaster
