#include "tests/support/nodes/simulated_nodes.hpp"

#include <caf/send.hpp>

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

namespace ringmaster::test {

namespace {

std::filesystem::path new_directory() {
  static int clusters = 0;
  return std::filesystem::path{"/dev/shm"} / fmt::format("ringmaster-nodes-{}-{}", ::getpid(), ++clusters);
}

std::vector<std::unique_ptr<simulated_process>> processes_for(size_t nodes, bool with_client) {
  std::vector<std::unique_ptr<simulated_process>> result;
  for (size_t i = 0; i <= nodes; ++i)
    result.push_back(std::make_unique<simulated_process>(simulated_nodes::name_of(i)));
  if (with_client)
    result.push_back(std::make_unique<simulated_process>("client"));
  return result;
}

} // namespace

std::string simulated_nodes::name_of(size_t process) {
  return process == 0 ? "coordinator" : fmt::format("node-{}", process);
}

simulated_nodes::simulated_nodes(const nodes_options& opts)
  : simulated_host(opts.seed), options(opts), dir_(new_directory()),
    processes_(processes_for(opts.devices.size(), keeps_store())), network_(random, opts.network),
    now_(processes_[0]->scheduler.clock().now()), client_(std::in_place, client_process().sys, true),
    nodes_(processes()) {
  start_coordinator();
  if (opts.standby)
    keep_leases();
  host = served_;
  if (keeps_store()) {
    host = nullptr;
    const auto done = [this](const caf::expected<caf::strong_actor_ptr>& found) {
      REQUIRE(found);
      host = proxy_in(client_process(), caf::actor_cast<coordinator_actor>(*found));
    };
    network_.connect(client_process(), *processes_[0], caf::actor_cast<caf::strong_actor_ptr>(served_),
                     std::chrono::seconds{5}, now_, done);
    run_until([this] { return static_cast<bool>(host); });
  }
  uint32_t devices = 0;
  for (size_t i = 1; i < processes(); ++i) {
    start_node(i);
    devices += opts.devices[i - 1];
  }
  await_devices(devices);
  for (size_t a = 1; a < processes(); ++a)
    for (size_t b = a + 1; b < processes(); ++b)
      run_until([&] { return connected(a, b); });
}

simulated_nodes::~simulated_nodes() {
  ends_ = true; // processes end one after the other: those that remain look for no coordinator
  if (auto left = end(); !left.empty()) {
    std::fputs(("simulated nodes: " + left + "\n").c_str(), stderr);
    std::abort(); // an actor system would wait for ever
  }
  agenda_.clear();
  processes_.clear(); // requests that wait in them are answered now
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

void simulated_nodes::start_coordinator() {
  auto& sys = processes_[0]->sys;
  start_journal(sys);
  coordinator_options settings;
  settings.journal = journal_handle;
  settings.communicators.policy = options.policy;
  settings.idle_interval = options.idle_interval;
  settings.communicators.turn = caf::timespan{0};
  settings.communicators.journal = journal_handle;
  settings.communicators.share_memory = options.one_host;
  if (options.one_host)
    settings.communicators.neighbours = std::make_shared<memory_neighbours>(mapped_memory::access::write);
  if (keeps_store())
    settings = recoverable(std::move(settings));
  served_ = sys.spawn<fair_coordinator>(std::move(settings));
}

coordinator_actor simulated_nodes::proxy_in(simulated_process& own, const coordinator_actor& remote) {
  coordinator_way way;
  way.draw_caller = [this] { return ++callers_; };
  way.watch = [this, &own](coordinator_way::successor to) { watches_.emplace_back(&own, std::move(to)); };
  way.look = [this, &own](const proto::ClusterIdentity&, coordinator_way::found then) { look(own, std::move(then)); };
  return make_coordinator_proxy(own.sys, {remote, identity_, {}}, std::move(way));
}

void simulated_nodes::look(simulated_process& own, coordinator_way::found then) {
  if (ends_)
    return;
  static constexpr auto try_again = std::chrono::milliseconds{100};
  const auto again = [this, &own, then] { look(own, then); };
  const auto done = [this, again, then, identity = identity_](const caf::expected<caf::strong_actor_ptr>& found) {
    if (ends_)
      return;
    if (found && *found)
      then(found_coordinator{caf::actor_cast<coordinator_actor>(*found), identity, {}});
    else
      agenda_.emplace(now_ + try_again, event{again, false});
  };
  const bool is_there = processes_[0]->state != simulated_process::condition::ended;
  if (!is_there
      || !network_.connect(own, *processes_[0], caf::actor_cast<caf::strong_actor_ptr>(served_),
                           std::chrono::seconds{5}, now_, done))
    agenda_.emplace(now_ + try_again, event{again, false});
}

void simulated_nodes::start_node(size_t process) {
  auto& own = *processes_[process];
  node_options settings;
  settings.name = own.name;
  settings.hostname = options.one_host ? "host" : "host-of-" + own.name;
  settings.pid = process;
  settings.host_id = options.one_host ? this_host() : process;
  settings.devices = options.devices[process - 1];
  settings.reach = [=, this](const node_actor& us, auto& peer) { reach(process, us, peer); };
  settings.device.memory_dir = dir_ / own.name;
  std::filesystem::create_directories(settings.device.memory_dir);
  settings.device.memory_bytes = options.memory_bytes;
  auto& streams = settings.device.streams_options;
  streams.slice_bytes = options.slice_bytes;
  streams.chunk_bytes = options.slice_bytes;
  streams.eager_bytes = options.eager_bytes;
  if (options.one_host)
    streams.neighbours = std::make_shared<memory_neighbours>(mapped_memory::access::read);
  nodes_[process] = own.sys.spawn(node, std::move(settings));
  proto::Adopt join;
  join.set_host("simulated");
  join.set_port(port_of(process));
  auto adopt = [=, this, &own, us = nodes_[process]](const caf::expected<caf::strong_actor_ptr>& coordinator) {
    if (!coordinator)
      return;
    auto handle = caf::actor_cast<coordinator_actor>(*coordinator);
    if (keeps_store())
      handle = proxy_in(own, handle);
    caf::anon_send(us, join, caf::actor_cast<caf::strong_actor_ptr>(handle));
  };
  network_.connect(own, *processes_[0], caf::actor_cast<caf::strong_actor_ptr>(served_), std::chrono::seconds{5}, now_,
                   adopt);
}

void simulated_nodes::reach(size_t from, const node_actor& us, const proto::NodePeers::Peer& peer) {
  constexpr auto limit = std::chrono::seconds{5};
  auto to = peer.port() - port_of(0);
  proto::NodeApart answer;
  answer.set_peer(peer.name());
  auto tell = [=](const caf::expected<caf::strong_actor_ptr>& found) mutable {
    if (!found) {
      answer.set_why(render(found.error()));
      answer.set_half_made(code_of(found.error()) != errc::unreachable);
    }
    caf::anon_send(us, std::move(answer), found ? *found : nullptr);
  };
  auto there = caf::actor_cast<caf::strong_actor_ptr>(nodes_[to]);
  if (network_.connect(*processes_[from], *processes_[to], there, limit, now_, tell))
    return;
  auto refuse = [=]() mutable {
    tell(make_error(errc::unreachable, fmt::format("{} cannot be reached from {}", name_of(to), name_of(from))));
  };
  agenda_.emplace(now_ + std::chrono::milliseconds{1}, event{refuse, false});
}

// -- time ------------------------------------------------------------------------

bool simulated_nodes::step() {
  now_ += options.turn;
  if (keeps_store()) { // what the test has asked leaves at once
    client_process().serve_network();
    network_.gather(client_process(), now_);
  }
  if (wake())
    return true;
  size_t ready = 0;
  for (auto& x : processes_)
    ready += x->runs() ? x->ready() : 0;
  if (ready == 0)
    return pass_time();
  auto which = random() % ready;
  for (auto& x : processes_) {
    auto here = x->runs() ? x->ready() : 0;
    if (which < here) {
      x->handle(which, now_);
      network_.gather(*x, now_);
      return true;
    }
    which -= here;
  }
  return true;
}

bool simulated_nodes::wake() {
  if (!agenda_.empty() && agenda_.begin()->first <= now_) {
    auto next = std::move(agenda_.begin()->second);
    agenda_.erase(agenda_.begin());
    next.what();
    return true;
  }
  for (auto& x : processes_)
    if (auto next = x->runs() ? x->next_timeout() : std::nullopt; next && *next <= now_) {
      x->wake(now_);
      network_.gather(*x, now_);
      return true;
    }
  return network_.deliver(now_);
}

bool simulated_nodes::pass_time() {
  auto next = network_.next_arrival();
  auto or_at = [&](const std::optional<time_point>& x) {
    if (x && (!next || *x < *next))
      next = x;
  };
  for (auto& x : processes_)
    if (x->runs())
      or_at(x->next_timeout());
  if (!agenda_.empty())
    or_at(agenda_.begin()->first);
  if (next)
    now_ = std::max(now_, *next);
  return next.has_value();
}

void simulated_nodes::run_for(caf::timespan time) {
  auto until = now_ + time;
  later(time, [] {});
  run_until([&] { return now_ >= until; });
}

void simulated_nodes::later(caf::timespan time, std::function<void()> what) {
  agenda_.emplace(now_ + time, event{std::move(what)});
}

} // namespace ringmaster::test
