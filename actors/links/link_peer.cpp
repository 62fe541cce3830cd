#include "actors/links/link_peer.hpp"

#include "actors/links/link_hub.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <spdlog/spdlog.h>

namespace ringmaster {

link_peer::link_peer(io_loop& loop, const link_options& options, link_counts& counts, const link_place& there)
  : process_(there.process) {
  constexpr size_t endpoints_max = 16;
  for (auto& text : there.endpoints) {
    auto where = parse_endpoint(text);
    if (!where)
      failure_ = where.error();
    for (uint32_t i = 0; where && i < options.connections && connections_.size() < endpoints_max * options.connections;
         ++i)
      connections_.push_back(std::make_unique<link_receiver>(loop, options, counts, process_, there.name, *where,
                                                             static_cast<owner&>(*this)));
  }
  if (connections_.empty() && !failure_)
    failure_ = make_error(errc::unreachable, "it has no address for bulk connections");
}

link_receiver* link_peer::freest(time_point now) {
  link_receiver* result = nullptr;
  for (auto& x : connections_)
    if (x->usable(now) && (result == nullptr || x->load() < result->load()))
      result = x.get();
  return result;
}

void link_peer::fetch(const std::shared_ptr<link_fetch>& what) {
  constexpr uint64_t piece_bytes_min = 512u << 10; // less is not worth a second connection
  ensure(what->parts.empty(), "a block is fetched once");
  auto now = awake_clock::actor_now();
  auto usable = std::count_if(connections_.begin(), connections_.end(), [&](auto& x) { return x->usable(now); });
  for (auto [begin, end] : cut_block(what->bytes(), static_cast<uint64_t>(usable), piece_bytes_min, what->unit()))
    what->parts.push_back({end, begin});
  for (size_t i = 0; i < what->parts.size(); ++i) {
    auto* way = freest(now);
    if (way == nullptr) {
      auto& why = connections_.empty() ? failure_ : connections_.front()->failure();
      return what->end(link_fetch::outcome::unreachable, why);
    }
    way->want({what, i});
    if (!what->running())
      return cancel(*what); // it has failed at once, as all others would
  }
}

void link_peer::cancel(const link_fetch& what) {
  for (auto& x : connections_)
    x->cancel(what);
}

void link_peer::doubt() {
  for (auto& x : connections_)
    x->doubt();
}

void link_peer::on_failed(std::vector<wanted_part> parts, const caf::error& why) {
  auto now = awake_clock::actor_now();
  spdlog::warn("{}", render(why));
  for (auto& part : parts) {
    if (!part.fetch->running())
      continue;
    if (auto* other = freest(now)) {
      other->want(part);
      continue;
    }
    part.fetch->end(link_fetch::outcome::unreachable, why);
    cancel(*part.fetch);
  }
}

void link_peer::on_time(time_point now) {
  for (auto& x : connections_)
    x->on_time(now);
}

link_peer::time_point link_peer::due() const {
  auto result = time_point::max();
  for (auto& x : connections_)
    result = std::min(result, x->due());
  return result;
}

bool link_peer::forgettable(time_point now) const {
  return std::all_of(connections_.begin(), connections_.end(), [&](auto& x) { return x->forgettable(now); });
}

} // namespace ringmaster
