// The coordinator's store, and how one coordinator follows another that has the store in etcd.
#include "actors/calls/answers.hpp"
#include "runtime/journal/record_text.hpp"
#include "runtime/metadata/cluster_metadata.hpp"
#include "tests/support/actor_state.hpp"
#include "tests/support/nodes/simulated_nodes.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace ringmaster::test {

namespace {

constexpr caf::timespan lease = std::chrono::seconds{2};
/// How often the program looks whether it still leads (coordinator_command).
constexpr caf::timespan look_every = std::chrono::milliseconds{100};
/// Within which a process finds that its coordinator is silent and another one leads.
constexpr caf::timespan switch_limit = std::chrono::seconds{1};

} // namespace

// -- storing -----------------------------------------------------------------------

/// An actor of the coordinator's process, which answers when the disk or etcd has.
metadata_actor simulated_nodes::spawn_writer(simulated_process& own, const std::shared_ptr<simulated_store>& store) {
  using answer_promise = caf::typed_response_promise<proto::StoreAnswer>;
  const auto begin = [this, &own, store](const proto::StoreChanges& x, const caf::actor& to) {
    auto& batch = unsure_[++batches_] = {&own, store, {}, to};
    for (auto& entry : x.entries())
      batch.changes.push_back({entry.key(), entry.erased() ? std::nullopt : std::optional{entry.value()}});
    const auto most = static_cast<uint64_t>(options.disk_time_max.count());
    const caf::timespan time{most == 0 || random() % 2 == 0 ? 0 : static_cast<int64_t>(random() % most)};
    agenda_.emplace(now_ + time, event{[this, number = batches_] { store_batch(number); }, false});
    return batches_;
  };
  const auto writer = [=, this](caf::event_based_actor* self, bool) -> caf::behavior {
    auto promises = std::make_shared<std::map<uint64_t, answer_promise>>();
    return {[=](const proto::StoreChanges& x) {
              auto promise = self->make_response_promise<answer_promise>();
              promises->emplace(begin(x, caf::actor{self}), promise);
              if (x.last())
                self->quit();
              return promise;
            },
            [=, this](atom::expire, uint64_t number) {
              proto::StoreAnswer answer;
              set_error_in(answer, stored_answers_.extract(number).mapped());
              promises->extract(number).mapped().deliver(std::move(answer));
            }};
  };
  return caf::actor_cast<metadata_actor>(own.sys.spawn(writer, true));
}

void simulated_nodes::store_batch(uint64_t number) {
  const auto found = unsure_.find(number);
  if (found == unsure_.end())
    return; // its process was killed
  const auto its_leader = std::ranges::find(leaders_, found->second.store, &leader::store);
  if (its_leader != leaders_.end() && its_leader->cut_until > now_) { // it tries again, until it is certain
    agenda_.emplace(its_leader->cut_until, event{[this, number] { store_batch(number); }, false});
    return;
  }
  const auto batch = std::move(unsure_.extract(number).mapped());
  stored_answers_[number] = batch.changes.empty() ? batch.store->look_after() : batch.store->commit(batch.changes);
  if (batch.process->state != simulated_process::condition::ended)
    caf::anon_send(batch.writer, atom::expire_v, number);
}

coordinator_options simulated_nodes::recoverable(coordinator_options settings) {
  simulated_store::options with;
  with.where = stored_;
  with.sync = options.synced;
  with.shared = options.standby;
  with.lease = lease;
  with.clock = [this] { return now_; };
  auto store = std::make_shared<simulated_store>(std::move(with));
  leaders_.push_back({processes_[0].get(), store, log, {}, {}});
  if (options.standby)
    note_end_of_lease(leaders_.size() - 1);
  auto run = start_incarnation(*store, 4711);
  REQUIRE(run);
  identity_.set_cluster_id(run->cluster.cluster_id());
  identity_.set_incarnation(run->cluster.incarnation());
  settings.store = store;
  settings.writer = spawn_writer(*processes_[0], store);
  settings.identity = identity_;
  settings.communicators.recoverable = true;
  settings.ids->start_above(run->ids);
  settings.found = std::move(*run);
  return settings;
}

// -- leading -----------------------------------------------------------------------

void simulated_nodes::cut_from_store(caf::timespan time) {
  leaders_.back().cut_until = now_ + time;
}

void simulated_nodes::keep_leases() {
  for (size_t i = 0; i < leaders_.size(); ++i) {
    auto& x = leaders_[i];
    if (!x.process->runs() || x.cut_until > now_)
      continue;
    x.store->renew();
    if (!x.store->deposed())
      note_end_of_lease(i);
    else // the program finds that out at its next look, and exits
      agenda_.emplace(now_ + caf::timespan{static_cast<int64_t>(random() % static_cast<uint64_t>(look_every.count()))},
                      event{[this, process = x.process] {
                              if (process->runs())
                                kill(*process);
                            },
                            false});
  }
  agenda_.emplace(now_ + lease / 4, event{[this] { keep_leases(); }, false});
}

void simulated_nodes::note_end_of_lease(size_t of_leader) {
  const auto ends = leaders_[of_leader].store->holds_until();
  const auto look = [this, of_leader] {
    auto& x = leaders_[of_leader];
    if (x.led_until_ns || now_ < x.store->holds_until())
      return; // it was renewed
    if (x.process->runs())
      x.process->see(now_);
    x.led_until_ns = wall_clock{}.unix_ns(x.process->scheduler.clock().now());
    if (of_leader + 1 == leaders_.size() && stored_->is_free(now_))
      elect();
  };
  agenda_.emplace(ends, event{look, false});
}

void simulated_nodes::elect() {
  former_served_.emplace_back(std::exchange(served_, {}), std::exchange(journal_handle, {}));
  auto former = std::exchange(processes_[0], std::make_unique<simulated_process>(name_of(0)));
  auto& at = former->state == simulated_process::condition::ended ? former_ : processes_;
  at.insert(&at == &former_ ? at.end() : at.end() - 1, std::move(former)); // the client's is the last one
  processes_[0]->see(now_);
  log = nullptr; // each host has a journal of its own
  start_coordinator();
  for (auto& [own, to] : watches_)
    agenda_.emplace(now_ + caf::timespan{static_cast<int64_t>(random() % static_cast<uint64_t>(switch_limit.count()))},
                    event{[this, own = own, to = to] { switch_over(*own, to); }, false});
}

void simulated_nodes::switch_over(simulated_process& own, const coordinator_way::successor& to) {
  if (ends_ || own.state == simulated_process::condition::ended)
    return;
  const auto again = [this, &own, to] {
    agenda_.emplace(now_ + look_every, event{[this, &own, to] { switch_over(own, to); }, false});
  };
  if (!own.runs())
    return again();
  const auto done = [this, &own, to, again, identity = identity_](const caf::expected<caf::strong_actor_ptr>& found) {
    if (ends_)
      return;
    if (!found || !*found)
      return again();
    if (options.one_host) // as end_replaced_coordinator does
      for (auto& x : leaders_)
        if (x.process != processes_[0].get() && x.process->state != simulated_process::condition::ended)
          kill(*x.process);
    to({caf::actor_cast<coordinator_actor>(*found), identity, {}});
  };
  if (!network_.connect(own, *processes_[0], caf::actor_cast<caf::strong_actor_ptr>(served_), std::chrono::seconds{5},
                        now_, done))
    again();
}

// -- what they have written ----------------------------------------------------------

std::vector<proto::Record> simulated_nodes::history() {
  if (!keeps_store())
    return simulated_host::history();
  run_for(std::chrono::milliseconds{5}); // the coordinator may be paused or killed, and write no more
  std::vector<proto::Record> result;
  const journal_store* before = nullptr; // one that is restarted goes on with its journal
  for (auto& x : leaders_)
    if (auto* its = x.log.get(); std::exchange(before, its) != its)
      if (auto records = its->read())
        std::ranges::move(*records, std::back_inserter(result));
  return result;
}

std::string simulated_nodes::judge_former_leaders() {
  for (auto& x : leaders_) {
    if (x.log == log || !x.led_until_ns)
      continue;
    auto records = x.log->read();
    REQUIRE(records);
    for (auto& record : *records)
      if (record.time_ns() > *x.led_until_ns
          && (record.has_epoch_opened() || record.has_operation_enqueued() || record.has_operation_started()
              || record.has_operation_ended() || record.has_communicator_created() || record.has_device_died()))
        return "a coordinator that led no longer did this: " + ringmaster::text_of(record, {uint64_t{0}, {}, {}});
  }
  return {};
}

} // namespace ringmaster::test
