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

/// The device of a process that runs one rank: state that its handles, of several communicators, share.
struct own_device {
  std::shared_ptr<mapped_memory> memory;
  std::mutex guard;
  rank_mailbox* meets = nullptr;                ///< The mailbox that has a call on its page that is not settled.
  std::atomic<uint64_t> messages_under_way = 0; ///< Calls of all handles.
};

/// Makes small collectives of a rank without messages, if the ranks are processes of one host: the ranks exchange their
/// inputs on a page of shared memory (runtime/mailbox/shared_mailbox.hpp). A call that cannot be made this way, or that
/// a rank makes late, is sent as a message on all ranks instead; the guarantees of calls hold for both. Calls of one
/// handle, and of other handles of the device, stay in order.
///
/// There is no background thread: a call makes progress while its rank calls or waits, and every `look_every` (`tick`).
class rank_mailbox : public work_driver, public std::enable_shared_from_this<rank_mailbox> {
public:
  /// Makes a call by messages.
  using by_messages = std::function<void(proto::RankCall, std::shared_ptr<work::state>)>;
  /// Aborts the communicator: its ranks may have matched different calls.
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

  /// Errors: unreachable where the page cannot be mapped; in_use where the rank has another handle.
  static caf::expected<std::shared_ptr<rank_mailbox>> join(const proto::MeetingResponse& page, const place& where,
                                                           std::shared_ptr<own_device> device, by_messages otherwise,
                                                           abort give_up);
  /// Makes the call through the page or as a message; the result completes `calls`.
  void call(proto::RankCall x, std::shared_ptr<work::state> calls);
  /// Settles the open call and counts the new one: another handle of the device is about to send a message.
  static void make_way(const std::shared_ptr<own_device>& device, work::state& calls);
  /// The handle is being destroyed: a call that is not settled is sent as a message.
  void leave();

  /// Calls that were made through the page.
  uint64_t calls_met() const { return met_calls_; }

  // -- work_driver --
  void look(work::state& calls) override;
  void wait(work::state& calls, clock::time_point until) override;

  /// Whether `tick` must be called, `look_every` from now. After it has returned true it returns false until the next
  /// `tick`.
  bool wants_ticks();
  /// Settles a call that no thread waits for. From any thread. Returns the new `wants_ticks`.
  bool tick();
  /// Rank 0: operations since the last report, if a report is due.
  std::optional<proto::MetReport> report(bool at_once);

private:
  /// A call that is on the page.
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
  /// Copies this rank's input into its slot. False: the call or the device's memory is not valid, which the message
  /// path reports in more detail.
  bool bring_input(const proto::RankCall& x, const plan_request& request, uint64_t number);
  void send(proto::RankCall x, std::shared_ptr<work::state> calls);
  /// The page was truncated. This rank cannot know which of its calls others have matched; if it sent the call again as
  /// a message, they could take it for their next one. So the handle makes no more calls, and the communicator is
  /// aborted. Errors: aborted.
  caf::error page_lost();
  // All with the device's guard held.
  bool look();
  /// Finishes the attempt unless it is open. Returns whether it did.
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
  std::shared_ptr<std::atomic<bool>> stale_; ///< The communicator has opened another epoch.
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
