#include "actors/streams/local_commands.hpp"

#include "actors/calls/answers.hpp"
#include "actors/streams/route.hpp"
#include "actors/streams/stream.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/reduction/reducer.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>

namespace ringmaster {

namespace {

double seconds_of(caf::timespan x) {
  return std::chrono::duration<double>{x}.count();
}

caf::error late(std::string text) {
  return make_error(errc::timed_out, std::move(text));
}

/// Reports to the device how a transfer has ended.
void report_transfer(stream_state& stream, stream_id transfer, const caf::error& error) {
  gpu_sim::StreamId id;
  id.set_value(transfer.value);
  gpu_sim::GetStreamStatusResponse status;
  status.set_status(!error ? gpu_sim::SUCCESS : gpu_sim::FAILED);
  set_error_in(status, error);
  if (stream.device)
    stream.self->send(stream.device, std::move(id), std::move(status));
}

command_outcome end_transfer(stream_state& stream, stream_id transfer, uint64_t bytes, const caf::error& error) {
  report_transfer(stream, transfer, error);
  return command_outcome::ended(bytes, error);
}

class send_command : public command {
public:
  send_command(const gpu_sim::BeginSendRequest& request, stream_id transfer, const device_handle& destination)
    : request_(request), destination_(destination) {
    key_.channel = transfer.value;
  }

  const char* kind() const override { return "send"; }

  void forewarn(stream_state&, const refused& x) override {
    if (x.key == key_)
      doomed_ = x.why();
  }

  command_outcome begin(stream_state& stream) override {
    auto range = stream.memory->at(request_.sendbuffaddr().value(), request_.numbytes());
    if (!range)
      return withdraw(stream, range.error());
    if (doomed_)
      return end(stream, 0, doomed_);
    caf::optional<block_reduction> reduction;
    if (request_.has_reduction())
      reduction = block_reduction::of(request_.reduction());
    stream.offer_block(destination_, destination_.device, key_, request_.sendbuffaddr().value(), request_.numbytes(),
                       true, reduction);
    reads_seen_ = stream.reads_of(key_);
    stream.limit_head(stream.options.transfer_limit);
    return command_outcome::goes_on();
  }

  command_outcome on_taken(stream_state& stream, const taken& x) override {
    return x.key == key_ ? end(stream, request_.numbytes(), {}) : command_outcome::goes_on();
  }

  command_outcome on_refused(stream_state& stream, const refused& x) override {
    return x.key == key_ ? end(stream, 0, x.why()) : command_outcome::goes_on();
  }

  command_outcome on_limit(stream_state& stream) override {
    const auto reads = stream.reads_of(key_);
    ensure(reads >= reads_seen_, "reads are counted up");
    if (std::exchange(reads_seen_, reads) != reads) { // it is being read, piece by piece
      stream.limit_head(stream.options.transfer_limit);
      return command_outcome::goes_on();
    }
    const auto limit_s = seconds_of(stream.options.transfer_limit);
    if (std::exchange(withdrawn_, true))
      return end(stream, 0,
                 late(fmt::format("rank {} has not said within {:.1f} s whether it has transfer {}",
                                  request_.dstrank().value(), limit_s, key_.channel)));
    tell_receiver(stream, late(fmt::format("rank {} has posted no BeginReceive for transfer {} within {:.1f} s",
                                           request_.dstrank().value(), key_.channel, limit_s)));
    stream.limit_head(stream.options.transfer_limit);
    return command_outcome::goes_on();
  }

private:
  /// Ends before anything was offered, and spares the receiver its wait.
  command_outcome withdraw(stream_state& stream, const caf::error& error) {
    stream.self->send(caf::actor_cast<device_actor>(destination_.device), refused::by(key_, error));
    return end(stream, 0, error);
  }

  /// The receiver may just have started to read: its answer decides.
  void tell_receiver(stream_state& stream, const caf::error& error) {
    stream.self->send(caf::actor_cast<device_actor>(destination_.device),
                      refused::by(key_, error, stream.self->ctrl()));
  }

  command_outcome end(stream_state& stream, uint64_t bytes, const caf::error& error) {
    ensure(bytes == 0 || !error, "a transfer that has failed moves no bytes");
    stream.retract(key_);
    return end_transfer(stream, stream_id{key_.channel}, bytes, error);
  }

  gpu_sim::BeginSendRequest request_;
  device_handle destination_;
  transfer_key key_;
  uint64_t reads_seen_ = 0;
  bool withdrawn_ = false;
  caf::error doomed_; ///< The other end had refused it before it started.
};

/// Bytes that come in order, cut anywhere: gives whole elements to a sink.
class ordered_bytes {
public:
  void put(const block_sink& sink, std::span<const std::byte> bytes) {
    const auto unit = sink.unit();
    auto offset = arrived_ - cut_.size();
    arrived_ += bytes.size();
    if (!cut_.empty()) {
      const auto wanted = std::min<size_t>(unit - cut_.size(), bytes.size());
      cut_.insert(cut_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(wanted));
      bytes = bytes.subspan(wanted);
      if (cut_.size() < unit)
        return;
      sink.put(offset, cut_);
      offset += unit;
    }
    const auto whole = bytes.size() / unit * unit;
    sink.put(offset, bytes.first(whole));
    cut_.assign(bytes.begin() + static_cast<std::ptrdiff_t>(whole), bytes.end());
    ensure(cut_.size() < unit, "no more than a part of an element is left");
  }
  uint64_t arrived() const { return arrived_; }

private:
  uint64_t arrived_ = 0;
  std::vector<std::byte> cut_; ///< The first bytes of an element whose others have not arrived.
};

std::string text_of_reduction(const gpu_sim::TransferReduction& x) {
  return fmt::format("{} of {}", name_of(x.op()), name_of(x.datatype()));
}

gpu_sim::TransferReduction to_wire(const block_reduction& x) {
  gpu_sim::TransferReduction result;
  result.set_op(static_cast<gpu_sim::ReduceOp>(x.op));
  result.set_datatype(static_cast<proto::DataType>(x.datatype));
  return result;
}

class receive_command : public command {
public:
  receive_command(const gpu_sim::BeginReceiveRequest& request, device_id source) : request_(request), source_(source) {
    key_.channel = request.streamid().value();
  }

  const char* kind() const override { return "receive"; }

  bool expects(const transfer_key& key) const override { return key == key_ && !route_ && outside_.arrived() == 0; }

  void forewarn(stream_state& stream, const refused& x) override {
    if (x.key != key_)
      return;
    doomed_ = x.why();
    if (auto sender = caf::actor_cast<stream_actor>(x.sender))
      stream.self->send(sender, refused::by(key_, doomed_));
  }

  command_outcome begin(stream_state& stream) override {
    auto early = stream.claim(key_);
    if (early)
      sender_ = early->sender;
    auto range = stream.memory->at(request_.recvbuffaddr().value(), request_.numbytes());
    if (!range)
      return end(stream, range.error());
    if (doomed_)
      return end(stream, doomed_);
    sink_.out = range->data();
    if (auto problem = request_.has_reduction() ? reduce_by(request_.reduction()) : caf::error{})
      return end(stream, problem);
    stream.limit_head(stream.options.transfer_limit);
    return early ? on_offer(stream, *early) : command_outcome::goes_on();
  }

  command_outcome on_offer(stream_state& stream, const offer& x) override {
    ensure(!route_ && outside_.arrived() == 0, "a receive takes one offer");
    sender_ = x.sender;
    if (x.source.device != source_)
      return end(stream, invalid(fmt::format(
                           "transfer {} comes from device 0x{:x}, but BeginReceive names rank {}, device 0x{:x}",
                           key_.channel, x.source.device, request_.srcrank().value(), source_)));
    if (x.source.bytes != request_.numbytes())
      return end(stream, sizes(x.source.bytes));
    if (auto problem = x.reduction ? agree_on(to_wire(*x.reduction)) : caf::error{})
      return end(stream, problem);
    auto way = stream.route_to(x, sink_);
    if (!way)
      return end(stream, way.error());
    stream.memory->expect_bytes({sink_.out, request_.numbytes()});
    route_ = std::move(*way);
    return resume(stream);
  }

  command_outcome resume(stream_state& stream) override {
    ensure(route_ != nullptr, "a block comes by a route");
    const auto progress = route_->advance(stream);
    if (progress == route::progress::more
        && stream.now() >= sign_due_) { // a sender that hears nothing withdraws its offer
      sign_due_ = stream.now() + stream.options.transfer_limit / 4;
      stream.self->send(caf::actor_cast<stream_actor>(sender_), pull{key_, 0, 0});
    }
    return react(stream, progress);
  }

  command_outcome on_chunk(stream_state& stream, const chunk& x) override {
    return route_ && x.key == key_ ? react(stream, route_->on_chunk(stream, x)) : command_outcome::goes_on();
  }

  command_outcome on_refused(stream_state& stream, const refused& x) override {
    return x.key == key_ ? end(stream, x.why()) : command_outcome::goes_on();
  }

  command_outcome on_limit(stream_state& stream) override {
    const auto seen = pieces_ + (route_ ? route_->arrived() : 0);
    if (std::exchange(pieces_seen_, seen) != seen) {
      stream.limit_head(stream.options.transfer_limit);
      return command_outcome::goes_on();
    }
    const auto limit_s = seconds_of(stream.options.transfer_limit);
    return end(stream, late(!route_ && outside_.arrived() == 0
                              ? fmt::format("rank {} has sent nothing for transfer {} within {:.1f} s",
                                            request_.srcrank().value(), key_.channel, limit_s)
                              : fmt::format("transfer {} from rank {} was not complete within {:.1f} s", key_.channel,
                                            request_.srcrank().value(), limit_s)));
  }

  /// Bytes from outside. `problem`: what is wrong with them.
  command_outcome take(stream_state& stream, const std::string& data, caf::error& problem) {
    const auto arrived = outside_.arrived();
    ensure(arrived <= request_.numbytes(), "no more bytes arrive than are expected");
    if (route_) {
      problem = invalid(fmt::format("transfer {} is being received from device 0x{:x}", key_.channel, source_));
      return command_outcome::goes_on();
    }
    if (data.size() > request_.numbytes() - arrived) {
      problem = sizes(arrived + data.size());
      return end(stream, problem);
    }
    outside_.put(sink_, std::as_bytes(std::span{data}));
    ++pieces_;
    return outside_.arrived() == request_.numbytes() ? end(stream, {}) : command_outcome::goes_on();
  }

  uint64_t transfer() const { return key_.channel; }

private:
  /// From now on bytes are reduced into the range. Errors: those of `reducer::of_transfer`.
  caf::error reduce_by(const gpu_sim::TransferReduction& x) {
    TRY(found, reducer::of_transfer(x, request_.numbytes()));
    combine_.emplace(std::move(*found));
    sink_.operand = sink_.out;
    sink_.combine = &*combine_;
    return caf::none;
  }

  /// The sender wants this reduction.
  caf::error agree_on(const gpu_sim::TransferReduction& x) {
    if (!combine_)
      return reduce_by(x);
    auto& ours = request_.reduction();
    if (x.op() == ours.op() && x.datatype() == ours.datatype())
      return caf::none;
    return invalid(fmt::format("transfer {}: the sender wants the {}, the receiver the {}: only one end need name it",
                               key_.channel, text_of_reduction(x), text_of_reduction(ours)));
  }

  command_outcome react(stream_state& stream, route::progress progress) {
    ++pieces_;
    switch (progress) {
      case route::progress::more: stream.resume_later(); break;
      case route::progress::waiting: break;
      case route::progress::done: return end(stream, {});
      case route::progress::broken: return end(stream, route_->error);
    }
    return command_outcome::goes_on();
  }

  caf::error sizes(uint64_t sent) const {
    return make_error(
      errc::size_mismatch,
      fmt::format("transfer {}: the sender sends {} bytes, the receiver (device range at 0x{:x}) expects {}",
                  key_.channel, sent, request_.recvbuffaddr().value(), request_.numbytes()));
  }

  command_outcome end(stream_state& stream, const caf::error& error) {
    if (auto sender = caf::actor_cast<stream_actor>(sender_)) {
      if (!error)
        stream.self->send(sender, taken{key_});
      else
        stream.self->send(sender, refused::by(key_, error));
    }
    return end_transfer(stream, stream_id{key_.channel}, error ? 0 : request_.numbytes(), error);
  }

  gpu_sim::BeginReceiveRequest request_;
  device_id source_;
  transfer_key key_;
  std::optional<reducer> combine_; ///< None: the bytes overwrite the range.
  block_sink sink_;
  std::unique_ptr<route> route_; ///< It uses `combine_`.
  caf::strong_actor_ptr sender_;
  ordered_bytes outside_; ///< Bytes from outside.
  uint64_t pieces_ = 0;   ///< Progress, for the limit.
  uint64_t pieces_seen_ = 0;
  std::chrono::steady_clock::time_point sign_due_;
  caf::error doomed_; ///< The other end had refused it before it started.
};

} // namespace

std::unique_ptr<command> make_send(const gpu_sim::BeginSendRequest& request, stream_id transfer,
                                   const device_handle& destination) {
  return std::make_unique<send_command>(request, transfer, destination);
}

std::unique_ptr<command> make_receive(const gpu_sim::BeginReceiveRequest& request, device_id source) {
  return std::make_unique<receive_command>(request, source);
}

void refuse_transfer(stream_state& stream, stream_id transfer, const caf::error& error) {
  report_transfer(stream, transfer, error);
}

gpu_sim::StreamSendResponse receive_data(stream_state& stream, const gpu_sim::DataChunk& x) {
  const auto transfer = x.streamid().value();
  auto* head = stream.queue.empty() ? nullptr : dynamic_cast<receive_command*>(stream.queue.front().get());
  if (head == nullptr || head->transfer() != transfer)
    return refusal<gpu_sim::StreamSendResponse>(
      errc::invalid_argument,
      fmt::format("the receive of transfer {} has not come to the head of its stream: it is at a {}", transfer,
                  stream.queue.empty() ? "nothing" : stream.queue.front()->kind()));
  caf::error problem;
  stream.act_on(head->take(stream, x.data(), problem));
  return verdict<gpu_sim::StreamSendResponse>(problem);
}

} // namespace ringmaster
