#include "actors/coordination/metadata_log.hpp"

#include "actors/calls/answers.hpp"
#include "actors/coordination/coordinator.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/logging/log.hpp"

#include <caf/send.hpp>
#include <spdlog/spdlog.h>

#include <iterator>
#include <utility>

namespace ringmaster {

namespace {

constexpr caf::timespan try_again_after = std::chrono::seconds{1};

metadata_actor::behavior_type metadata_writer(metadata_actor::pointer self,
                                              const std::shared_ptr<metadata_store>& store) {
  return {[self, store](const proto::StoreChanges& x) {
    if (x.last())
      self->quit();
    const auto changes = changes_of(x);
    proto::StoreAnswer answer;
    const auto problem = changes.empty() ? store->look_after() : store->commit(changes);
    store->note(problem);
    set_error_in(answer, problem);
    return answer;
  }};
}

} // namespace

metadata_actor spawn_metadata_writer(caf::actor_system& system, std::shared_ptr<metadata_store> store) {
  ensure(store != nullptr, "a writer has a store");
  return store->waits() ? system.spawn<caf::detached>(metadata_writer, std::move(store))
                        : system.spawn(metadata_writer, std::move(store));
}

void metadata_log::start(std::shared_ptr<metadata_store> store, const metadata_actor& writer) {
  if (store == nullptr)
    return;
  writer_ = writer ? writer : spawn_metadata_writer(coordinator_.self->system(), std::move(store));
}

metadata_log::~metadata_log() {
  if (!is_kept())
    return;
  put(metadata_key::ids, coordinator_.options.ids->last_mark().ids_reserved());
  under_way_.MergeFrom(std::exchange(next_, {})); // what is being written is written twice
  under_way_.set_last(true);
  caf::anon_send(std::exchange(writer_, nullptr), std::exchange(under_way_, {}));
}

void metadata_log::put(std::string key, const google::protobuf::MessageLite& value) {
  if (!is_kept())
    return;
  auto& entry = *next_.add_entries();
  entry.set_key(std::move(key));
  entry.set_value(value.SerializeAsString());
}

void metadata_log::erase(std::string key) {
  if (!is_kept())
    return;
  auto& entry = *next_.add_entries();
  entry.set_key(std::move(key));
  entry.set_erased(true);
}

void metadata_log::when_stored(std::function<void()> then) {
  if (next_.entries_size() > 0)
    waits_for_next_.push_back(std::move(then));
  else if (is_writing_)
    waits_.push_back(std::move(then));
  else
    then();
}

void metadata_log::flush() {
  if (!is_writing_ && try_again_ == 0 && next_.entries_size() > 0)
    write();
}

void metadata_log::look_after() {
  if (is_kept() && !is_writing_ && try_again_ == 0)
    write();
}

void metadata_log::write() {
  ensure(!is_writing_, "one transaction is written at a time");
  is_writing_ = true;
  under_way_.MergeFrom(std::exchange(next_, {})); // after those that could not be written
  std::move(waits_for_next_.begin(), waits_for_next_.end(), std::back_inserter(waits_));
  waits_for_next_.clear();
  coordinator_.self->request(writer_, caf::infinite, under_way_)
    .then([this](const proto::StoreAnswer& x) { written(error_in(x)); },
          [this](const caf::error& problem) { written(problem); });
}

void metadata_log::written(const caf::error& problem) {
  is_writing_ = false;
  if (!problem)
    under_way_.Clear();
  if (problem && !trouble_)
    spdlog::error("{}; {}a coordinator that is restarted may not find all of it", render(problem),
                  coordinator_.options.stop_without_store ? "" : "the cluster goes on, and ");
  if (!problem && trouble_)
    spdlog::info("the coordinator's store can be written again, and nothing is missing in it");
  trouble_ = problem;
  if (problem && (coordinator_.options.stop_without_store || coordinator_.options.store->deposed()))
    return coordinator_.self->quit(problem);
  if (!problem || coordinator_.options.store->holds()) // else another coordinator may lead, which does not know of it
    for (auto& then : std::exchange(waits_, {}))
      then();
  if (problem) {
    try_again_ = coordinator_.next_number();
    coordinator_.self->delayed_send(coordinator_.self, try_again_after, atom::expire_v, try_again_);
    return;
  }
  flush();
}

bool metadata_log::expire(uint64_t number) {
  if (number != try_again_)
    return false;
  try_again_ = 0;
  write();
  return true;
}

} // namespace ringmaster
