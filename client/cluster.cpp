#include "client/cluster.hpp"

#include "actors/calls/await_down.hpp"
#include "actors/configuration/settings.hpp"
#include "actors/hosts/connections.hpp"
#include "actors/hosts/coordinator_process.hpp"
#include "actors/hosts/coordinator_proxy.hpp"
#include "actors/hosts/journal.hpp"
#include "actors/hosts/open_connection.hpp"
#include "actors/hosts/process_trust.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "client/client.hpp"
#include "messages/try.hpp"
#include "runtime/coordination/id_ledger.hpp"
#include "runtime/coordination/join_checks.hpp"
#include "runtime/coordination/random_id.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/logging/log.hpp"
#include "runtime/text/endpoint.hpp"
#include "runtime/text/file_size_limit.hpp"

#include <caf/scoped_actor.hpp>

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <spdlog/spdlog.h>
#include <thread>

namespace ringmaster {

namespace {

/// Handles of the supervised actors: each stores its own for those that start after it.
struct handles {
  journal_actor journal;
  coordinator_actor coordinator;
  std::shared_ptr<id_ledger> ids = std::make_shared<id_ledger>();
  std::shared_ptr<journal_health> records = std::make_shared<journal_health>();
  std::shared_ptr<metadata_store> store; ///< Null: the cluster ends with this process.
  std::optional<cluster_metadata> run;   ///< Of the first coordinator, which has begun.
};

/// The next run of the coordinator on its store.
caf::error start_run(handles& with, coordinator_options& settings) {
  if (with.store == nullptr)
    return caf::none;
  caf::expected<cluster_metadata> found = with.run ? std::move(*std::exchange(with.run, std::nullopt))
                                                   : start_incarnation(*with.store, random_id());
  if (!found)
    return std::move(found.error());
  with.ids->start_above(found->ids);
  settings.store = with.store;
  settings.identity.set_cluster_id(found->cluster.cluster_id());
  settings.identity.set_incarnation(found->cluster.incarnation());
  name_this_process(settings.identity);
  settings.communicators.recoverable = true;
  settings.found = std::move(*found);
  return caf::none;
}

/// Continues the ids after those in the journal, and writes the first mark before any id is given.
caf::error reserve_ids(journal_store& store, id_ledger& ids) {
  ids.start_above(store.state());
  auto mark = ids.mark();
  if (!mark)
    return caf::none;
  mark->set_time_ns(wall_clock::of_this_process().unix_ns(awake_clock::actor_now()));
  return store.append({&*mark, 1});
}

journal_store::options store_options(const options& opts) {
  journal_store::options result;
  result.dir = opts.journal.dir;
  result.sync = *parse_journal_sync(opts.journal.sync);
  result.retain_records = opts.journal.retain_records;
  auto clock = wall_clock::of_this_process();
  result.now_ns = clock.unix_ns(awake_clock::actor_now());
  return result;
}

child_spec journal_child(const options& opts, const std::shared_ptr<handles>& found,
                         std::shared_ptr<journal_store> first) {
  return {"journal", [=](caf::event_based_actor* parent) mutable -> caf::actor {
            journal_options settings;
            settings.health = found->records;
            settings.sync_interval = opts.journal.sync_interval;
            settings.batch_records_max = opts.journal.batch_records;
            settings.store = std::exchange(first, nullptr);
            if (!settings.store) {
              auto again = journal_store::open(store_options(opts));
              if (!again) {
                spdlog::error("the journal cannot be opened again: {}", render(again.error()));
                return {};
              }
              settings.store = std::move(*again);
              if (auto problem = reserve_ids(*settings.store, *found->ids)) {
                spdlog::error("the journal cannot be written: {}", render(problem));
                return {};
              }
            }
            found->journal = settings.store->waits_for_disk()
                               ? parent->spawn<caf::detached>(journal, std::move(settings))
                               : parent->spawn(journal, std::move(settings));
            return caf::actor_cast<caf::actor>(found->journal);
          }};
}

/// Records messages that were refused where they came in, in the coordinator's name.
std::function<void(const refused_message&)> recorder_of_refusals(const coordinator_actor& coordinator,
                                                                 const journal_actor& journal) {
  return [from = caf::actor_cast<caf::actor_addr>(coordinator),
          to = caf::actor_cast<caf::actor_addr>(journal)](const refused_message& x) {
    const auto sender = caf::actor_cast<caf::strong_actor_ptr>(from), log = caf::actor_cast<caf::strong_actor_ptr>(to);
    if (!sender || !log)
      return;
    proto::Record record;
    record.set_time_ns(wall_clock::of_this_process().unix_ns(awake_clock::actor_now()));
    auto& audit = *record.mutable_audit();
    audit.set_role(std::string{name_of(x.from.who.as)});
    audit.set_name(x.from.who.name);
    audit.set_address(x.from.address);
    audit.set_action("was refused");
    audit.set_refused(x.why);
    audit.set_unrecorded(x.unreported);
    log->enqueue(sender, caf::make_message_id(), caf::make_message(std::move(record)), nullptr);
  };
}

child_spec coordinator_child(const options& opts, const std::shared_ptr<handles>& found,
                             const served_launcher& launcher) {
  return {"coordinator", [=](caf::event_based_actor* parent) -> caf::actor {
            ensure(static_cast<bool>(found->journal), "the journal starts before the coordinator");
            auto settings = coordinator_settings(opts);
            settings.ids = found->ids;
            settings.records = found->records;
            settings.job = launcher.job;
            settings.on_departure = launcher.on_departure;
            settings.journal = found->journal;
            settings.communicators.journal = found->journal;
            settings.silence_watch = make_silence_watch(parent->system());
            settings.encryption = process_trust::of(parent->system()).encryption();
            if (auto problem = start_run(*found, settings)) {
              spdlog::error("the coordinator cannot go on: {}", render(problem));
              return caf::actor{};
            }
            auto& peers = process_trust::of(parent->system()).peers();
            settings.identify = [&peers](const caf::node_id& process) { return peers.find(process); };
            found->coordinator = parent->spawn<fair_coordinator>(std::move(settings));
            peers.when_refused(recorder_of_refusals(found->coordinator, found->journal));
            return caf::actor_cast<caf::actor>(found->coordinator);
          }};
}

child_spec node_child(const options& opts, const std::shared_ptr<memory_directory>& memory,
                      const std::shared_ptr<handles>& found) {
  return {"node", [=](caf::event_based_actor* parent) {
            ensure(static_cast<bool>(found->coordinator), "the coordinator starts before the node");
            auto settings = node_settings(opts, memory->path());
            settings.device.keep_memory_dir = keeper_of(memory);
            settings.coordinator = found->coordinator;
            settings.device.streams_options.journal = found->journal;
            return caf::actor_cast<caf::actor>(parent->spawn(node, std::move(settings)));
          }};
}

caf::error check_route_at(caf::actor_system& system, const coordinator_actor& coordinator, const std::string& ours) {
  auto there = client{system, coordinator}.devices();
  return there ? check_route("this program", ours, there->route()) : std::move(there.error());
}

} // namespace

caf::expected<std::unique_ptr<cluster>> cluster::start(caf::actor_system& system, const options& opts, bool with_node,
                                                       const served_launcher& launcher,
                                                       std::shared_ptr<metadata_store> metadata) {
  survive_file_size_limit();
  start_log(opts);
  std::unique_ptr<cluster> result{new cluster{system}};
  auto found = std::make_shared<handles>();
  result->records_ = found->records;
  supervisor_options root;
  root.name = "cluster";
  root.strategy = restart_strategy::rest_for_one;
  root.restarts_max = opts.supervisor.restarts_max;
  root.period = opts.supervisor.period;
  TRY(store, journal_store::open(store_options(opts)));
  RETURN_ERROR(reserve_ids(**store, *found->ids));
  if (metadata != nullptr) {
    TRY(run, start_incarnation(*metadata, random_id()));
    found->run = std::move(*run);
    found->store = std::move(metadata);
  }
  root.children.push_back(journal_child(opts, found, std::move(*store)));
  root.children.push_back(coordinator_child(opts, found, launcher));
  if (with_node) {
    TRY(memory, memory_directory::open(opts.device.memory_dir, memory_files_bytes(opts), memory_file_bytes(opts)));
    result->memory_ = std::make_shared<memory_directory>(std::move(*memory));
    root.children.push_back(node_child(opts, result->memory_, found));
  }
  result->root_ = system.spawn(supervisor, std::move(root));
  RETURN_ERROR(result->find_coordinator());
  if (with_node)
    RETURN_ERROR(result->await_devices(opts.device.count));
  return result;
}

caf::expected<std::unique_ptr<cluster>> cluster::open(caf::actor_system& system, const options& opts) {
  auto elsewhere = coordinator_elsewhere(opts);
  if (elsewhere.empty())
    return start(system, opts, true);
  start_log(opts);
  TRY(coordinator, connect(system, elsewhere, opts.node.join_timeout, opts.node.orphan_timeout));
  if (opts.route.use != "auto")
    RETURN_ERROR(check_route_at(system, *coordinator, opts.route.use));
  return of(system, std::move(*coordinator));
}

std::unique_ptr<cluster> cluster::of(caf::actor_system& system, coordinator_actor coordinator) {
  ensure(static_cast<bool>(coordinator), "a cluster has a coordinator");
  std::unique_ptr<cluster> result{new cluster{system}};
  result->coordinator_ = std::move(coordinator);
  return result;
}

caf::error cluster::find_coordinator() {
  caf::scoped_actor self{system_};
  caf::error problem;
  self->request(root_, std::chrono::seconds{10}, caf::get_atom_v, std::string{"coordinator"})
    .receive([&](const caf::actor& x) { coordinator_ = caf::actor_cast<coordinator_actor>(x); },
             [&](caf::error& x) { problem = std::move(x); });
  if (coordinator_)
    return caf::none;
  return make_error(errc::timed_out, "the coordinator did not start within 10 s: " + render(problem));
}

caf::error cluster::await_devices(uint32_t count) {
  constexpr caf::timespan limit = std::chrono::seconds{30}; // as a device has for its id
  constexpr caf::timespan look = std::chrono::milliseconds{500};
  caf::scoped_actor self{system_};
  self->monitor(root_);
  client host{system_, coordinator_};
  for (auto give_up = awake_clock::actor_now() + limit;;) {
    auto there = host.devices(count, look);
    if (there)
      return caf::none;
    caf::error problem;
    if (const auto down = await_down(*self, caf::timespan{0}))
      problem = make_error(errc::gave_up, fmt::format("the {} devices of this process did not start: {}", count,
                                                      render(down->reason)));
    if (!problem && awake_clock::actor_now() >= give_up)
      problem = make_error(errc::timed_out,
                           fmt::format("the devices of this process did not start within {:.0f} s: {}",
                                       std::chrono::duration<double>{limit}.count(), render(there.error())));
    if (problem)
      return problem;
  }
}

cluster::~cluster() {
  if (!root_)
    return;
  caf::scoped_actor self{system_};
  self->monitor(root_);
  self->send_exit(root_, caf::exit_reason::user_shutdown);
  if (!await_down(*self, std::chrono::seconds{20}))
    spdlog::error("the cluster's parts did not end within 20 s");
}

std::string coordinator_elsewhere(const options& opts) {
  auto variable = std::getenv("RINGMASTER_COORDINATOR");
  return !opts.node.join.empty() ? opts.node.join : variable != nullptr ? variable : "";
}

namespace {

/// At each of several addresses in turn, until one answers: the coordinators that wait to take over listen nowhere.
caf::expected<found_coordinator> find_at_any(caf::actor_system& system, const std::vector<endpoint>& where,
                                             caf::timespan limit) {
  if (where.size() == 1)
    return find_coordinator(system, where.front(), nullptr, limit);
  constexpr caf::timespan one_try = std::chrono::seconds{1}, pause = std::chrono::milliseconds{100};
  const auto give_up = awake_clock::actor_now() + limit;
  for (size_t i = 0;; ++i) {
    auto found = find_coordinator(system, where[i % where.size()], nullptr, one_try);
    const auto code = found ? errc::ok : code_of(found.error());
    const bool may_be_later = code == errc::unreachable || code == errc::timed_out;
    if (!may_be_later || (awake_clock::actor_now() >= give_up && i + 1 >= where.size()) || no_more_connecting::is_so())
      return found;
    if ((i + 1) % where.size() == 0)
      std::this_thread::sleep_for(pause);
  }
}

} // namespace

caf::expected<coordinator_actor> connect(caf::actor_system& system, const std::string& where, caf::timespan limit,
                                         caf::timespan patience) {
  TRY(targets, parse_endpoints(where));
  TRY(found, find_at_any(system, *targets, limit));
  if (found->identity.cluster_id() == 0)
    return std::move(found->handle);
  coordinator_way way;
  way.addresses = std::move(*targets);
  way.patience = patience;
  return make_coordinator_proxy(system, *found, std::move(way));
}

} // namespace ringmaster
