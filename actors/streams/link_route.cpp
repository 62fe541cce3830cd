#include "actors/links/link_hub.hpp"
#include "actors/streams/route.hpp"
#include "actors/streams/stream.hpp"
#include "runtime/invariants/ensure.hpp"

#include <caf/send.hpp>

namespace ringmaster {

namespace {

/// The block is fetched over bulk connections into its place; a chunk without bytes tells the stream that it is
/// complete. If no connection can be made, the missing bytes come in messages, unless another route is excluded.
class link_route : public route {
public:
  link_route(const offer& source, const block_sink& sink, std::shared_ptr<link_hub> hub)
    : source_(source), sink_(sink), hub_(std::move(hub)) {}
  link_route(const link_route&) = delete;
  link_route& operator=(const link_route&) = delete;

  ~link_route() override {
    if (fetch_)
      hub_->revoke(fetch_);
  }

  progress advance(stream_state& stream) override {
    auto notify = [key = source_.key, us = caf::actor_cast<stream_actor>(stream.self->ctrl())] {
      caf::anon_send(us, chunk{key, 0, {}});
    };
    ensure(fetch_ == nullptr && hub_ != nullptr, "a block is fetched once");
    fetch_ = hub_->fetch(source_.source.place->link, source_.key, source_.source.device, sink_, source_.source.bytes,
                         std::move(notify));
    return progress::waiting;
  }

  progress on_chunk(stream_state& stream, const chunk& x) override {
    ensure(fetch_ != nullptr, "a chunk comes for a block that is fetched");
    if (instead_)
      return passed_on(instead_->on_chunk(stream, x));
    switch (fetch_->state()) {
      case link_fetch::outcome::done: return progress::done;
      case link_fetch::outcome::unreachable:
        if (stream.options.route == "auto") {
          instead_ = make_message_route(source_, sink_, fetch_->missing());
          return passed_on(instead_->advance(stream));
        }
        [[fallthrough]];
      case link_fetch::outcome::damaged: error = fetch_->why(); return progress::broken;
      default: return progress::waiting; // a block that was withdrawn is of an older epoch: the new one comes soon
    }
  }

  uint64_t arrived() const override { return fetch_ ? fetch_->pieces() : 0; }

private:
  progress passed_on(progress x) {
    if (x == progress::broken)
      error = instead_->error;
    return x;
  }

  offer source_;
  block_sink sink_;
  std::shared_ptr<link_hub> hub_;
  std::shared_ptr<link_fetch> fetch_;
  std::unique_ptr<route> instead_;
};

} // namespace

std::unique_ptr<route> make_link_route(const offer& source, const block_sink& sink, const stream_options& ours) {
  return std::make_unique<link_route>(source, sink, ours.link);
}

} // namespace ringmaster
