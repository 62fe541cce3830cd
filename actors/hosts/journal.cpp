#include "actors/hosts/journal.hpp"

#include "actors/calls/answers.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/queries/journal_page.hpp"
#include "runtime/journal/record_text.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

namespace ringmaster {
namespace {

using self_pointer = journal_actor::stateful_pointer<journal_state>;

// Logs when failure starts, changes or stops.
void report(caf::error& known, const caf::error& err, const char* what) {
  auto text = [](const caf::error& x) { return x ? render(x) : std::string{}; };
  if (text(err) == text(known))
    return;
  if (err)
    spdlog::error("journal: cannot {}: {}", what, render(err));
  else
    spdlog::info("journal: can {} again", what);
  known = err;
}

// The flush comes after everything in the mailbox; later while writing fails, and to batch records that need not be
// durable at once.
void send_flush(self_pointer self) {
  auto& state = self->state;
  if (std::exchange(state.flush_sent, true))
    return;
  auto& store = *state.options.store;
  auto at_once = !store.waits_for_disk() || store.sync() == journal_sync::always;
  auto pause = state.write_failure ? state.options.sync_interval
               : at_once           ? caf::timespan{0}
                                   : state.options.write_delay;
  state.flush_due = self->clock().now() + pause;
  if (pause.count() == 0)
    self->send(self, atom::flush_v);
  else
    self->delayed_send(self, pause, atom::flush_v);
}

void enqueue(self_pointer self, proto::Record record) {
  auto& state = self->state;
  if (!record.has_rank_ended()) // one for each rank of an operation: they would displace all others
    flight_recorder::instance().note(record);
  if (state.queue.size() >= state.options.queue_records_max) {
    ++state.lost;
    state.options.health->lost(1);
  } else {
    state.queue.push_back(std::move(record));
    ensure(state.queue.size() <= state.options.queue_records_max, "the queue of records has a limit");
    if (!state.write_failure && state.queue.size() >= state.options.batch_records_max)
      state.write();
    if (state.write_failure)
      state.options.health->waiting(state.queue.size());
  }
  send_flush(self);
}

void plan_sync(self_pointer self) {
  auto& state = self->state;
  if (state.options.store->sync() != journal_sync::interval || state.synced == state.written
      || std::exchange(state.sync_planned, true))
    return;
  auto& opts = state.options;
  auto left = opts.sync_interval; // where syncing fails, until it is tried again
  if (!state.sync_failure)
    left -= std::min(opts.write_delay, opts.sync_interval / 2); // the oldest record has waited
  state.sync_due = self->clock().now() + left;
  self->delayed_send(self, left, atom::flush_v);
}

void plan_look(self_pointer self) {
  auto& state = self->state;
  if (!state.options.store->waits_for_disk())
    return;
  state.look_due = self->clock().now() + state.options.look_interval;
  self->delayed_send(self, state.options.look_interval, atom::flush_v);
}

// Any flush message does what is due.
void on_flush(self_pointer self) {
  auto& state = self->state;
  if (self->clock().now() >= state.look_due) {
    state.look_after_store();
    plan_look(self);
  }
  if (self->clock().now() >= state.flush_due) { // else the message for it is still to come
    state.flush_sent = false;
    state.write();
  }
  if (!state.queue.empty())
    send_flush(self);
  if (state.sync_planned && self->clock().now() >= state.sync_due) {
    state.sync_planned = false;
    if (state.synced < state.written)
      state.sync();
  }
  plan_sync(self);
}

// A failing disk is not tried for each request: the latest error holds until the next try is due.
caf::error write_soon(self_pointer self) {
  auto& state = self->state;
  const bool waits = state.write_failure && state.flush_sent && self->clock().now() < state.flush_due;
  return waits ? state.write_failure : state.write();
}

proto::JournalFlushResponse flush_now(self_pointer self, const proto::JournalFlushRequest& x) {
  auto& state = self->state;
  proto::JournalFlushResponse response;
  auto err = x.unsynced() ? write_soon(self) : state.sync();
  auto lost = std::exchange(state.lost, 0);
  ensure(state.synced <= state.written, "no more records are durable than were written");
  response.set_records(state.written);
  response.set_success(!err && lost == 0);
  if (lost > 0)
    err = make_error(errc::io_error,
                     fmt::format("{} records were lost, since {} were waiting to be written{}{}", lost,
                                 state.options.queue_records_max, err ? ": " : "", err ? render(err) : ""));
  set_error_in(response, err);
  return response;
}

proto::JournalTailResponse tail(journal_state& state, const proto::JournalTailRequest& x) {
  auto err = state.write();
  auto& store = *state.options.store;
  journal_page_limits limits;
  limits.records_max = state.options.tail_records_max;
  auto page = journal_page(store, x, limits);
  if (!page) {
    proto::JournalTailResponse refused;
    set_error_in(refused, page.error());
    return refused;
  }
  if (store.waits_for_disk() && store.sync() != journal_sync::always)
    page->set_unsynced(state.written - state.synced);
  set_error_in(*page, err);
  return std::move(*page);
}

// An exit message overtakes the records in the mailbox; a request to itself comes after them. What a slow disk keeps
// it from within the limit is written when the state goes.
void leave(self_pointer self, const caf::error& reason) {
  constexpr caf::timespan leave_limit = std::chrono::minutes{10};
  if (std::exchange(self->state.leaving, true))
    return;
  self->request(caf::actor_cast<journal_actor>(self), leave_limit, proto::JournalFlushRequest{})
    .then([self, reason](const proto::JournalFlushResponse&) { self->quit(reason); },
          [self, reason](const caf::error&) { self->quit(reason); });
}

/// Nodes write records, too, and must not say who has done what.
bool may_say(self_pointer self, const proto::Record& record) {
  const auto& sender = self->current_sender();
  return !record.has_audit() || (sender && sender->node() == self->node());
}

} // namespace

journal_state::~journal_state() {
  if (!options.store)
    return;
  look_after_store();
  if (queue.empty() && synced == written)
    return;
  if (!leaving || !write_failure) // else it has just been tried, which may take seconds
    sync();
  options.health->waiting(0);
  options.health->lost(queue.size());
  if (!queue.empty())
    spdlog::error("journal: exits, {} records were never written", queue.size());
}

caf::error journal_state::look_after_store() {
  auto err = options.store->keep_in_place();
  if (auto loss = options.store->take_loss())
    options.health->lost(loss->records, loss->cause);
  if (err || queue.empty()) {
    report(write_failure, err, "write");
    options.health->failing(err);
  }
  return err;
}

caf::error journal_state::write() {
  if (queue.empty())
    return caf::none;
  auto err = look_after_store();
  if (!err)
    err = options.store->append(queue);
  if (auto loss = options.store->take_loss())
    options.health->lost(loss->records, loss->cause);
  report(write_failure, err, "write");
  options.health->failing(err);
  if (!err) {
    ensure(written + queue.size() > written, "records that are written are counted");
    written += queue.size();
    queue.clear();
  }
  options.health->waiting(queue.size());
  return err;
}

caf::error journal_state::sync() {
  auto err = write();
  if (err || synced == written)
    return err;
  err = options.store->flush();
  ensure(queue.empty() && synced < written, "all records are written before they are made durable");
  report(sync_failure, err, "sync");
  if (!err)
    synced = written;
  return err;
}

journal_actor::behavior_type journal(self_pointer self, journal_options options) {
  ensure(options.store != nullptr, "the journal has a store");
  self->state.options = std::move(options);
  plan_look(self);
  self->set_exit_handler([self](caf::exit_msg& msg) { leave(self, std::move(msg.reason)); });
  return {
    [self](proto::Record& record) {
      if (may_say(self, record))
        enqueue(self, std::move(record));
    },
    [self](proto::Records& records) {
      for (auto& record : *records.mutable_records())
        if (may_say(self, record))
          enqueue(self, std::move(record));
    },
    [self](const proto::JournalFlushRequest& x) { return flush_now(self, x); },
    [self](const proto::JournalTailRequest& request) { return tail(self->state, request); },
    [self](atom::flush) { on_flush(self); },
  };
}

struct flight_recorder::ring {
  mutable std::mutex guard;
  std::array<proto::Record, records_max> records; ///< Reused: a copy into one that is as large allocates nothing.
  size_t noted = 0;                               ///< Since the start.
};

flight_recorder::flight_recorder() : ring_(std::make_unique<ring>()) {}

flight_recorder::~flight_recorder() = default;

flight_recorder& flight_recorder::instance() {
  static auto* recorder = [] {
    auto* made = new flight_recorder; // never destroyed: a process may abort while it ends
    report_before_abort([made] { return made->text(); });
    return made;
  }();
  return *recorder;
}

void flight_recorder::note(const proto::Record& record) {
  std::scoped_lock lock{ring_->guard};
  ring_->records[ring_->noted++ % records_max] = record;
}

std::string flight_recorder::text() const {
  std::unique_lock lock{ring_->guard, std::try_to_lock};
  if (!lock || ring_->noted == 0)
    return {};
  std::string result = "the journal's last records:";
  for (auto i = ring_->noted > records_max ? ring_->noted - records_max : 0; i < ring_->noted; ++i)
    result += "\n  " + text_of(ring_->records[i % records_max]);
  return result;
}

} // namespace ringmaster
