#pragma once

#include "gateway/course/call_registry.hpp"

#include <caf/actor_clock.hpp>
#include <caf/error.hpp>
#include <caf/timespan.hpp>
#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace ringmaster::gateway {

/// What a client has called, and how.
struct call_origin {
  std::string method;          ///< "/gpu_sim.GPUCoordinator/CommInit"
  std::optional<size_t> place; ///< The device at whose address the call has arrived: its place in the listener's list.
  std::optional<uint64_t> device; ///< Of the metadata `device-id`.
  std::optional<uint64_t> stream; ///< Of the metadata `streamid`.
  /// Of a StreamSend: what its first chunk says, for the others. They come one after the other.
  std::shared_ptr<std::optional<uint64_t>> chunks_stream{};
  std::optional<caf::timespan> limit{}; ///< What is left until the client's deadline; none: it has none.
};

/// A request of a client, which is answered once: by the actor that serves it, with an error when the listener stops,
/// or with one when it is dropped. Answers from any thread.
class course_call {
public:
  /// Sends the answer, or the error.
  using reply = std::function<void(const caf::error& problem, grpc::ByteBuffer answer)>;

  course_call(call_registry::ticket_pointer ticket, call_origin origin, grpc::ByteBuffer request, reply answers);
  ~course_call();
  course_call(const course_call&) = delete;
  course_call& operator=(const course_call&) = delete;

  const call_origin& origin() const noexcept { return origin_; }
  grpc::ByteBuffer& request() noexcept { return request_; }
  call_registry::ticket& ticket() noexcept { return *ticket_; }

  /// Reads the request. Errors: invalid_argument.
  caf::error parse(google::protobuf::MessageLite& into);

  void answer(const google::protobuf::MessageLite& x);
  void answer(grpc::ByteBuffer x) { finish(caf::none, std::move(x)); }
  void fail(const caf::error& problem) { finish(problem, {}); }

  /// The actor that serves the call has received it.
  void started(caf::actor_clock::time_point now, caf::timespan usual_limit);
  /// What is left of its limit, at least 1 ms.
  caf::timespan left(caf::actor_clock::time_point now) const;

private:
  void finish(const caf::error& problem, grpc::ByteBuffer x);

  const call_registry::ticket_pointer ticket_;
  const call_origin origin_;
  grpc::ByteBuffer request_;
  reply reply_;
  std::atomic<bool> answered_{false};
  caf::actor_clock::time_point ends_at_{};
};

using call_pointer = std::shared_ptr<course_call>;

} // namespace ringmaster::gateway
