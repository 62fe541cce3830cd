#include "actors/streams/route.hpp"
#include "actors/streams/stream.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace ringmaster {

namespace {

/// The simplest route: the sender's stream answers each pull with a chunk; a few are in flight at once. They may come
/// in another order if the connection between two processes changes meanwhile.
class message_route : public route {
public:
  using ranges = std::vector<std::pair<uint64_t, uint64_t>>;

  message_route(const offer& source, const block_sink& sink, ranges wanted)
    : source_(source), sink_(sink), wanted_(std::move(wanted)) {}

  progress advance(stream_state& stream) override {
    while (next_ < wanted_.size() && awaited_.size() < stream.options.credits) {
      auto& [begin, end] = wanted_[next_];
      ensure(begin <= end && end <= source_.source.bytes, "a range lies in its block");
      if (begin == end) {
        ++next_;
        continue;
      }
      auto size = std::min(stream.options.chunk_bytes, end - begin);
      stream.self->send(caf::actor_cast<stream_actor>(source_.sender), pull{source_.key, begin, size});
      const bool is_new = awaited_.emplace(begin, size).second;
      ensure(is_new, "a chunk is pulled once");
      begin += size;
    }
    return awaited_.empty() ? progress::done : progress::waiting;
  }

  progress on_chunk(stream_state& stream, const chunk& x) override {
    auto asked = awaited_.find(x.offset);
    if (asked == awaited_.end() || asked->second != x.block.size()) {
      error = malformed(fmt::format("a chunk of {} bytes at offset {} came that was not asked for", x.block.size(),
                                    x.offset));
      return progress::broken;
    }
    awaited_.erase(asked);
    sink_.put(x.offset, x.block.bytes());
    return advance(stream);
  }

private:
  offer source_;
  block_sink sink_;
  ranges wanted_; ///< Ranges that have not been pulled.
  size_t next_ = 0;
  std::map<uint64_t, uint64_t> awaited_; ///< Sizes by offset.
};

} // namespace

std::unique_ptr<route> make_message_route(const offer& source, const block_sink& sink,
                                          std::vector<std::pair<uint64_t, uint64_t>> ranges) {
  return std::make_unique<message_route>(source, sink, std::move(ranges));
}

} // namespace ringmaster
