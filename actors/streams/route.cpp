#include "actors/streams/route.hpp"

#include "actors/streams/stream.hpp"
#include "runtime/reduction/reduction.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <map>

namespace ringmaster {

void block_sink::put(uint64_t offset, std::span<const std::byte> bytes) const {
  if (factor != 1)
    return scale(datatype, factor, bytes.data(), out + offset, bytes.size() / size_of(datatype));
  if (bytes.empty() || (operand == nullptr && out + offset == bytes.data()))
    return; // a block that is in its place already
  if (operand == nullptr)
    std::memcpy(out + offset, bytes.data(), bytes.size());
  else
    (*combine)(bytes.data(), operand + offset, out + offset, bytes.size() / size_of(combine->datatype()));
}

namespace {

/// The receiver reads the sender's memory: no byte is copied that need not be.
class memory_route : public route {
public:
  memory_route(const offer& source, const block_sink& sink) : memory_route(source.source, sink) {}
  memory_route(const device_window& source, const block_sink& sink) : source_(source), sink_(sink) {}

  progress advance(stream_state& stream) override {
    auto block = source_.memory->at_runtime(source_.address, source_.bytes);
    if (!block) {
      error = render(block.error());
      return progress::broken;
    }
    auto size = std::min(stream.options.slice_bytes, source_.bytes - offset_);
    sink_.put(offset_, block->subspan(offset_, size));
    if (auto damage = source_.memory->damage()) {
      error = render(damage);
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

/// The plainest route: the sender's stream answers each pull with a chunk, a few of them under way at once. They may
/// come in another order, where the way between two processes changes meanwhile.
class message_route : public route {
public:
  message_route(const offer& source, const block_sink& sink) : source_(source), sink_(sink) {}

  progress advance(stream_state& stream) override {
    while (asked_ < source_.source.bytes && awaited_.size() < stream.options.credits) {
      auto size = std::min(stream.options.chunk_bytes, source_.source.bytes - asked_);
      stream.self->send(caf::actor_cast<stream_actor>(source_.sender), pull{source_.key, asked_, size});
      awaited_.emplace(asked_, size);
      asked_ += size;
    }
    return awaited_.empty() ? progress::done : progress::waiting;
  }

  progress on_chunk(stream_state& stream, const chunk& x) override {
    auto asked = awaited_.find(x.offset);
    if (asked == awaited_.end() || asked->second != x.block.size()) {
      error = fmt::format("a chunk of {} bytes at offset {} came that was not asked for", x.block.size(), x.offset);
      return progress::broken;
    }
    awaited_.erase(asked);
    sink_.put(x.offset, x.block.bytes());
    return advance(stream);
  }

private:
  offer source_;
  block_sink sink_;
  uint64_t asked_ = 0;
  std::map<uint64_t, uint64_t> awaited_; ///< Sizes by offset.
};

template <class Route>
std::unique_ptr<route> made(const offer& source, const block_sink& sink) {
  return std::make_unique<Route>(source, sink);
}

class fold_route : public route {
public:
  explicit fold_route(const folded_lanes& what) : what_(what) {}

  progress advance(stream_state& stream) override {
    const auto lane_bytes = what_.out.size();
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

} // namespace

std::unique_ptr<route> make_fold(const folded_lanes& what) {
  return std::make_unique<fold_route>(what);
}

std::span<const known_route> routes() {
  static constexpr known_route all[] = {
    {"memory", [](const offer& x) { return x.source.memory != nullptr; }, made<memory_route>},
    {"messages", [](const offer&) { return true; }, made<message_route>}};
  return all;
}

caf::expected<std::unique_ptr<route>> make_route(const offer& source, const block_sink& sink, std::string_view wanted) {
  for (const auto& x : routes())
    if ((wanted == "auto" || wanted == x.name) && x.reaches(source)) {
      auto result = x.make(source, sink);
      result->name = x.name;
      return result;
    }
  return make_error(errc::unreachable,
                    fmt::format("device {:#x} cannot be reached by the route \"{}\", which route.use wants: take "
                                "\"auto\"",
                                source.source.device, wanted));
}

std::unique_ptr<route> make_own_route(const device_window& source, const block_sink& sink) {
  return std::make_unique<memory_route>(source, sink);
}

} // namespace ringmaster
