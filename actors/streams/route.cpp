#include "actors/streams/route.hpp"

#include "actors/streams/stream.hpp"
#include "runtime/configuration/routes.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/reduction/reduction.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace ringmaster {

namespace {

/// The receiver reads the sender's memory: no byte is copied twice.
class memory_route : public route {
public:
  memory_route(const device_window& source, const block_sink& sink) : source_(source), sink_(sink) {}

  progress advance(stream_state& stream) override {
    auto block = source_.memory->at_runtime(source_.address, source_.bytes);
    if (!block) {
      error = make_error(errc::corrupt, render(block.error()));
      return progress::broken;
    }
    ensure(offset_ <= source_.bytes, "a block is read to its end");
    const auto size = std::min(stream.options.slice_bytes, source_.bytes - offset_);
    sink_.put(offset_, block->subspan(offset_, size));
    if (auto damage = source_.memory->damage()) {
      error = make_error(errc::corrupt, render(damage));
      return progress::broken;
    }
    offset_ += size;
    return offset_ == source_.bytes ? progress::done : progress::more;
  }

private:
  device_window source_;
  block_sink sink_;
  uint64_t offset_ = 0;
};

/// A block that has travelled within its offer.
class enclosed_route : public route {
public:
  enclosed_route(const offer& source, const block_sink& sink) : block_(source.block), sink_(sink) {}

  progress advance(stream_state&) override {
    sink_.put(0, block_.bytes());
    return progress::done;
  }

private:
  byte_block block_;
  block_sink sink_;
};

class fold_route : public route {
public:
  explicit fold_route(const folded_lanes& what) : what_(what) {}

  progress advance(stream_state& stream) override {
    const auto lane_bytes = what_.out.size();
    ensure(lane_bytes > 0 && what_.lanes.size() % lane_bytes == 0, "lanes have equal sizes");
    const auto lanes = what_.lanes.size() / lane_bytes;
    constexpr uint64_t least = 64; // whole elements
    auto size = std::max(stream.options.slice_bytes / (lanes + 1) / least * least, least);
    size = std::min(size, lane_bytes - offset_);
    sources_.clear();
    for (uint64_t i = 0; i < lanes; ++i)
      sources_.push_back(what_.lanes.data() + i * lane_bytes + offset_);
    what_.combine->many(sources_, what_.out.data() + offset_, size / size_of(what_.combine->datatype()), what_.finish,
                        what_.world_size);
    offset_ += size;
    return offset_ == lane_bytes ? progress::done : progress::more;
  }

private:
  folded_lanes what_;
  std::vector<const std::byte*> sources_;
  uint64_t offset_ = 0;
};

/// Between processes; within one, memory takes the place of a link.
bool goes_by_link(const offer& x, const stream_options& ours) {
  bool linked = ours.link != nullptr && x.source.place != nullptr && x.source.place->link.process != 0;
  return x.source.memory != nullptr || linked;
}

/// In the order of `route_table`.
constexpr std::array<known_route, route_table.size()> known_routes{{
  {[](const offer& x, const stream_options&) { return x.source.memory != nullptr; }, // memory
   [](const offer& x, const block_sink& sink, const stream_options&) { return make_own_route(x.source, sink); }},
  {goes_by_link, // link
   [](const offer& x, const block_sink& sink, const stream_options& ours) {
     return x.source.memory != nullptr ? make_own_route(x.source, sink) : make_link_route(x, sink, ours);
   }},
  {[](const offer&, const stream_options&) { return true; }, // messages
   [](const offer& x, const block_sink& sink, const stream_options&) {
     return make_message_route(x, sink, {{0, x.source.bytes}});
   }},
}};
static_assert(known_routes.back().make != nullptr, "each row of route_table has one here");

} // namespace

void stream_options::force(const std::string& use) {
  route = use;
  if (use != "auto" && use != "memory")
    neighbours = nullptr;
  if (use != "auto" && use != "link")
    link = nullptr;
}

std::unique_ptr<route> make_fold(const folded_lanes& what) {
  return std::make_unique<fold_route>(what);
}

caf::expected<std::unique_ptr<route>> make_route(const offer& source, const block_sink& sink,
                                                 const stream_options& ours) {
  if (source.block.size() == source.source.bytes) {
    auto result = std::make_unique<enclosed_route>(source, sink);
    result->name = "offers";
    return result;
  }
  for (size_t i = 0; i < route_table.size(); ++i)
    if (auto name = route_table[i].name;
        (ours.route == "auto" || ours.route == name) && known_routes[i].reaches(source, ours)) {
      auto result = known_routes[i].make(source, sink, ours);
      result->name = name;
      return result;
    }
  return make_error(errc::unreachable,
                    fmt::format("device {:#x} cannot be reached by the route \"{}\", which route.use names: take "
                                "\"auto\"",
                                source.source.device, ours.route));
}

std::unique_ptr<route> make_own_route(const device_window& source, const block_sink& sink) {
  return std::make_unique<memory_route>(source, sink);
}

} // namespace ringmaster
