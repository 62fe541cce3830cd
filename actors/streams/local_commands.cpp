#include "actors/streams/local_commands.hpp"

#include "actors/calls/answers.hpp"
#include "actors/streams/stream.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace ringmaster {

namespace {

caf::error lost() {
  return make_error(errc::device_lost, "the stream died before it had run this command");
}

/// Bytes from one place to another, a slice at a time.
class sliced_copy {
public:
  sliced_copy() = default;
  sliced_copy(const std::byte* source, std::byte* destination, uint64_t bytes)
    : source_(source), destination_(destination), bytes_(bytes) {}

  /// Returns whether all is copied.
  bool advance(uint64_t slice_bytes) {
    ensure(slice_bytes > 0 && done_ <= bytes_, "a copy advances to its end");
    const auto size = std::min(slice_bytes, bytes_ - done_);
    if (size > 0)
      std::memcpy(destination_ + done_, source_ + done_, size);
    done_ += size;
    return done_ == bytes_;
  }

private:
  const std::byte* source_ = nullptr;
  std::byte* destination_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t done_ = 0;
};

class memcpy_command : public command {
public:
  using promise_type = caf::typed_response_promise<gpu_sim::MemcpyResponse, byte_block>;

  memcpy_command(const gpu_sim::MemcpyRequest& request, byte_block block, promise_type promise)
    : request_(request), block_(std::move(block)), promise_(std::move(promise)) {}

  ~memcpy_command() override {
    if (promise_.pending())
      answer(lost());
  }

  const char* kind() const override { return request_.has_hosttodevice() ? "copy_in" : "copy_out"; }

  command_outcome begin(stream_state& stream) override {
    if (auto problem = request_.has_hosttodevice() ? prepare_in(stream) : prepare_out(stream)) {
      answer(problem);
      return command_outcome::ended(0, problem);
    }
    return resume(stream);
  }

  command_outcome resume(stream_state& stream) override {
    if (!copy_.advance(stream.options.slice_bytes)) {
      stream.resume_later();
      return command_outcome::goes_on();
    }
    const auto bytes = block_.size();
    auto damage = stream.memory->damage();
    answer(damage);
    return command_outcome::ended(bytes, std::move(damage));
  }

private:
  caf::error prepare_in(stream_state& stream) {
    auto& in = request_.hosttodevice();
    if (block_.size() == 0 && !in.hostsrcdata().empty())
      block_ = byte_block::of(std::vector<char>(in.hostsrcdata().begin(), in.hostsrcdata().end()));
    TRY(range, stream.memory->at(in.dstmemaddr().value(), block_.size()));
    stream.memory->expect_bytes(*range);
    copy_ = {block_.data(), range->data(), block_.size()};
    return caf::none;
  }

  caf::error prepare_out(stream_state& stream) {
    auto& out = request_.devicetohost();
    TRY(range, stream.memory->at(out.srcmemaddr().value(), out.numbytes()));
    std::byte* bytes = nullptr;
    block_ = byte_block::uninitialized(out.numbytes(), bytes);
    copy_ = {range->data(), bytes, out.numbytes()};
    return caf::none;
  }

  void answer(const caf::error& error) {
    gpu_sim::MemcpyResponse response;
    set_error_in(response, error);
    if (request_.has_hosttodevice()) {
      response.mutable_hosttodevice()->set_success(!error);
      promise_.deliver(std::move(response), byte_block{});
    } else {
      response.mutable_devicetohost();
      promise_.deliver(std::move(response), !error ? block_ : byte_block{});
    }
  }

  gpu_sim::MemcpyRequest request_;
  byte_block block_;
  promise_type promise_;
  sliced_copy copy_;
};

class copy_command : public command {
public:
  using promise_type = caf::typed_response_promise<proto::CopyResponse>;

  copy_command(const proto::CopyRequest& request, promise_type promise)
    : request_(request), promise_(std::move(promise)) {}

  ~copy_command() override {
    if (promise_.pending())
      answer(lost());
  }

  const char* kind() const override { return "copy"; }

  command_outcome begin(stream_state& stream) override {
    auto source = stream.memory->at(request_.source().value(), request_.bytes());
    auto destination = stream.memory->at(request_.destination().value(), request_.bytes());
    auto error = !source ? source.error() : !destination ? destination.error() : caf::error{};
    if (!error)
      stream.memory->expect_bytes(*destination);
    if (!error && request_.bytes() > 0)
      std::memmove(destination->data(), source->data(), request_.bytes());
    if (!error)
      error = stream.memory->damage();
    answer(error);
    return command_outcome::ended(error ? 0 : request_.bytes(), error);
  }

private:
  void answer(const caf::error& error) { promise_.deliver(verdict<proto::CopyResponse>(error)); }

  proto::CopyRequest request_;
  promise_type promise_;
};

class event_record_command : public command {
public:
  event_record_command(event_id event, uint64_t record) : event_(event), record_(record) {}

  const char* kind() const override { return "event_record"; }

  command_outcome begin(stream_state& stream) override {
    if (stream.device)
      stream.self->send(stream.device, atom::recorded_v, event_.value, record_);
    return command_outcome::ended_without_record();
  }

private:
  event_id event_;
  uint64_t record_;
};

class event_wait_command : public command {
public:
  event_wait_command(event_id event, uint64_t record) : event_(event), record_(record) {}

  const char* kind() const override { return "event_wait"; }

  command_outcome begin(stream_state& stream) override {
    ensure(!waits_, "a command starts once");
    if (recorded_)
      return command_outcome::ended_without_record();
    waits_ = true;
    stream.limit_head(stream.options.wait_limit);
    return command_outcome::goes_on();
  }

  command_outcome on_recorded(stream_state&, event_id event, uint64_t record) override {
    if (event != event_ || record != record_)
      return command_outcome::goes_on();
    recorded_ = true;
    return waits_ ? command_outcome::ended_without_record() : command_outcome::goes_on();
  }

  command_outcome on_limit(stream_state& stream) override {
    using seconds = std::chrono::duration<double>;
    ensure(waits_ && !recorded_, "only an event that is waited for is late");
    return command_outcome::ended(
      0, make_error(errc::timed_out,
                    fmt::format("event {} was not recorded within {:.1f} s; stream {} of device 0x{:x} goes on", event_,
                                seconds{stream.options.wait_limit}.count(), stream.id, stream.memory->id())));
  }

private:
  event_id event_;
  uint64_t record_;
  bool recorded_ = false;
  bool waits_ = false;
};

class synchronize_command : public command {
public:
  using promise_type = caf::typed_response_promise<proto::StreamSynchronizeResponse>;

  synchronize_command(double limit_s, promise_type promise) : limit_s_(limit_s), promise_(std::move(promise)) {}

  ~synchronize_command() override {
    if (promise_.pending())
      answer(lost());
  }

  const char* kind() const override { return "synchronize"; }

  command_outcome begin(stream_state& stream) override {
    if (promise_.pending())
      answer(stream.last_error);
    return command_outcome::ended_without_record();
  }

  command_outcome on_limit(stream_state& stream) override {
    if (promise_.pending())
      answer(make_error(
        errc::timed_out,
        fmt::format("waited {:.1f} s for stream {} of device 0x{:x}: {} commands are queued, the first of them a {}",
                    limit_s_, stream.id, stream.memory->id(), stream.queue.size(), stream.queue.front()->kind())));
    return command_outcome::goes_on();
  }

private:
  void answer(const caf::error& error) { promise_.deliver(verdict<proto::StreamSynchronizeResponse>(error)); }

  double limit_s_;
  promise_type promise_;
};

} // namespace

std::unique_ptr<command> make_memcpy(const gpu_sim::MemcpyRequest& request, byte_block block,
                                     caf::typed_response_promise<gpu_sim::MemcpyResponse, byte_block> promise) {
  return std::make_unique<memcpy_command>(request, std::move(block), std::move(promise));
}

std::unique_ptr<command> make_copy(const proto::CopyRequest& request,
                                   caf::typed_response_promise<proto::CopyResponse> promise) {
  return std::make_unique<copy_command>(request, std::move(promise));
}

std::unique_ptr<command> make_event_record(event_id event, uint64_t record) {
  return std::make_unique<event_record_command>(event, record);
}

std::unique_ptr<command> make_event_wait(event_id event, uint64_t record) {
  return std::make_unique<event_wait_command>(event, record);
}

std::unique_ptr<command> make_synchronize(double limit_s,
                                          caf::typed_response_promise<proto::StreamSynchronizeResponse> promise) {
  return std::make_unique<synchronize_command>(limit_s, std::move(promise));
}

} // namespace ringmaster
