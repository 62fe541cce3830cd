#include "tests/support/nodes/simulated_network.hpp"

#include <caf/send.hpp>

#include <algorithm>

namespace ringmaster::test {

bool simulated_network::connect(simulated_process& from, simulated_process& to, const caf::strong_actor_ptr& published,
                                caf::timespan limit, time_point now, whom_answer done) {
  if (is_shut(from, to) || to.state == simulated_process::condition::ended)
    return false;
  auto& made = connections_.emplace_back();
  auto add_end = [&](end& x, simulated_process& who) {
    x.who = &who;
    x.handle = caf::io::connection_handle::from_int(++handles_);
    return who.network.new_scribe(x.handle);
  };
  auto there = add_end(made.ends[1], to);
  auto here = add_end(made.ends[0], from);
  auto port = static_cast<uint16_t>(handles_);
  caf::anon_send(to.protocol, caf::publish_atom_v, std::move(there), port, published, std::set<std::string>{});
  to.serve_network();
  gather(to, now);
  auto asks = [=, protocol = from.protocol](caf::event_based_actor* self, bool) {
    self->request(protocol, limit, caf::connect_atom_v, here, port)
      .then([done](const caf::node_id&, const caf::strong_actor_ptr& found,
                   const std::set<std::string>&) { done(found); },
            [done](const caf::error& problem) { done(problem); });
  };
  from.sys.spawn<caf::hidden>(asks, true);
  return true;
}

caf::timespan simulated_network::draw_delay() {
  auto result = options_.delay;
  if (options_.spread.count() > 0)
    result += caf::timespan{static_cast<int64_t>(random_() % static_cast<uint64_t>(options_.spread.count()))};
  return options_.late_per_mille > random_() % 1000 ? 100 * result : result;
}

void simulated_network::send(end& to, time_point now, std::vector<char> bytes, bool last) {
  auto arrives = now + draw_delay();
  bytes_ += bytes.size();
  if (!to.coming.empty())
    arrives = std::max(arrives, to.coming.back().arrives);
  to.coming.push_back({arrives, std::move(bytes), last});
}

void simulated_network::gather(simulated_process& from, time_point now) {
  for (auto& x : connections_)
    for (size_t i : {0, 1}) {
      auto [own, other] = std::tie(x.ends[i], x.ends[1 - i]);
      if (own.who != &from || !own.open)
        continue;
      auto bytes = std::exchange(from.network.output_buffer(own.handle), {});
      bool closed = from.network.stopped_reading(own.handle);
      own.open = !closed;
      if (!x.broken && (closed || !bytes.empty()))
        send(other, now, std::move(bytes), closed);
    }
}

bool simulated_network::can_hear(const connection& x, const end& at) const {
  if (!at.open || !at.who->runs() || at.coming.empty() || stalled_.count(way(*x.ends[0].who, *x.ends[1].who)) > 0)
    return false;
  auto& reader = at.who->network.impl_ptr(at.handle); // a socket keeps what comes before anybody reads; this would not
  return !reader || !reader->detached();
}

simulated_network::end* simulated_network::next_to_hear() {
  end* result = nullptr;
  for (auto& x : connections_)
    for (auto& at : x.ends)
      if (can_hear(x, at) && (result == nullptr || at.coming.front().arrives < result->coming.front().arrives))
        result = &at;
  return result;
}

std::optional<simulated_network::time_point> simulated_network::next_arrival() const {
  auto next = const_cast<simulated_network*>(this)->next_to_hear();
  return next == nullptr ? std::nullopt : std::optional{next->coming.front().arrives};
}

bool simulated_network::deliver(time_point now) {
  auto at = next_to_hear();
  if (at == nullptr || at->coming.front().arrives > now)
    return false;
  auto what = std::move(at->coming.front());
  at->coming.pop_front();
  auto& who = *at->who;
  who.see(now);
  arrive(*at, std::move(what));
  gather(who, now);
  std::erase_if(connections_, [](auto& x) { return !x.ends[0].open && !x.ends[1].open; });
  return true;
}

void simulated_network::arrive(end& at, packet what) {
  auto& network = at.who->network;
  if (!what.bytes.empty())
    network.virtual_send(at.handle, what.bytes);
  if (what.last && at.open) {
    at.open = false;
    if (auto scribe = network.impl_ptr(at.handle))
      scribe->io_failure(&network, caf::io::network::operation::read);
  }
  at.who->serve_network();
}

void simulated_network::cut(simulated_process& a, simulated_process& b, time_point now, caf::timespan lag) {
  cut_.insert(way(a, b));
  for (auto& x : connections_) {
    if (!joins(x, a, b) || std::exchange(x.broken, true))
      continue;
    for (auto& at : x.ends) {
      at.coming.clear();
      send(at, at.who == &b ? now + lag : now, {}, true);
    }
  }
}

void simulated_network::heal(simulated_process& a, simulated_process& b) {
  cut_.erase(way(a, b));
  stalled_.erase(way(a, b));
}

void simulated_network::heal_all() {
  cut_.clear();
  stalled_.clear();
}

void simulated_network::gone(simulated_process& who, time_point now) {
  for (auto& x : connections_)
    for (size_t i : {0, 1})
      if (x.ends[i].who == &who && std::exchange(x.ends[i].open, false) && !std::exchange(x.broken, true))
        send(x.ends[1 - i], now, {}, true);
}

bool simulated_network::connected(const simulated_process& a, const simulated_process& b) const {
  return std::any_of(connections_.begin(), connections_.end(),
                     [&](auto& x) { return joins(x, a, b) && !x.broken && x.ends[0].open && x.ends[1].open; });
}

} // namespace ringmaster::test
