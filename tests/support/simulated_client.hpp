#pragma once

#include "tests/support/simulated_cluster.hpp"
#include "tests/support/text_search.hpp"

#include <optional>
#include <tuple>

namespace ringmaster::test {

/// What came of a request that was sent without waiting for its answer.
template <class... Ts>
struct answer {
  std::optional<std::tuple<Ts...>> values;
  std::string problem; ///< Where CAF answered instead of the actor.

  bool arrived() const { return values || !problem.empty(); }
  auto& get() const {
    REQUIRE(problem == "");
    REQUIRE(values);
    return std::get<0>(*values);
  }
};

template <class... Ts>
using answer_ptr = std::shared_ptr<answer<Ts...>>;

using memcpy_answer = answer_ptr<gpu_sim::MemcpyResponse, byte_block>;

/// A client with several requests under way at once, which reach their receivers in the order of the calls. Device
/// calls go to the coordinator, as a client's do.
class simulated_client {
public:
  explicit simulated_client(simulated_cluster& cluster);
  ~simulated_client();

  /// Asks, and does not wait.
  template <class... Ts, class Handle, class... Xs>
  answer_ptr<Ts...> ask(const Handle& receiver, Xs&&... xs) {
    auto result = std::make_shared<answer<Ts...>>();
    self()
      ->request(caf::actor_cast<caf::actor>(receiver), caf::infinite, std::forward<Xs>(xs)...)
      .then([result](Ts&... values) { result->values = std::make_tuple(values...); },
            [result](const caf::error& problem) { result->problem = render(problem); });
    return result;
  }

  /// Asks a device, and does not wait.
  template <class Response, class Request>
  answer_ptr<Response> begin(uint64_t device, const Request& request) {
    gpu_sim::DeviceId id;
    id.set_value(device);
    return ask<Response>(cluster.host, id, request);
  }

  /// Asks a device and runs the cluster until it has answered.
  template <class Response, class Request>
  Response call(uint64_t device, const Request& request) {
    return wait_for(begin<Response>(device, request));
  }

  template <class... Ts>
  auto wait_for(const answer_ptr<Ts...>& pending) {
    cluster.run_until([&] { return pending->arrived(); });
    return pending->get();
  }

  memcpy_answer copy_in(uint64_t device, uint64_t address, byte_block block, uint64_t stream = 0);
  memcpy_answer copy_out(uint64_t device, uint64_t address, uint64_t bytes, uint64_t stream = 0);
  answer_ptr<proto::CopyResponse> copy(uint64_t device, uint64_t from, uint64_t to, uint64_t bytes,
                                       uint64_t stream = 0);
  uint64_t default_stream(uint64_t device);
  uint64_t new_stream(uint64_t device);
  answer_ptr<proto::StreamSynchronizeResponse> synchronize(uint64_t device, uint64_t stream,
                                                           caf::timespan limit = std::chrono::seconds{1});
  std::string record(uint64_t device, uint64_t event, uint64_t stream);
  std::string wait_event(uint64_t device, uint64_t event, uint64_t stream);
  /// Stream 0: one of the transfer's own.
  gpu_sim::BeginSendResponse begin_send(uint64_t device, uint64_t address, uint64_t bytes, uint32_t to_rank,
                                        uint64_t stream = 0);
  gpu_sim::BeginReceiveResponse begin_receive(uint64_t device, uint64_t transfer, uint64_t address, uint64_t bytes,
                                              uint32_t from_rank, uint64_t stream = 0);
  std::string feed(uint64_t device, uint64_t transfer, const std::string& data);
  gpu_sim::GetStreamStatusResponse status(uint64_t device, uint64_t stream);
  /// Runs until the transfer (or stream) is no longer in progress.
  gpu_sim::GetStreamStatusResponse ended(uint64_t device, uint64_t stream);

  simulated_cluster& cluster;

private:
  caf::event_based_actor* self();

  caf::actor actor_;
};

/// `size` bytes, each its index plus `first`.
byte_block counted_bytes(size_t size, int first = 0);
std::string text_of(const byte_block& block);

/// Virtual time since the clock's start.
std::chrono::nanoseconds time_of(simulated_cluster& cluster);

} // namespace ringmaster::test
