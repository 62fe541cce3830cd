#pragma once

#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "client/parallel/tensor.hpp"
#include "client/parallel/tensor_group.hpp"
#include "messages/errc.hpp"

#include <caf/actor_system.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

namespace ringmaster::test {

/// A cluster of eight devices in this process, on which groups of ranks call for themselves, each in a thread.
class played_ranks {
public:
  static constexpr uint32_t most = 8;
  static constexpr std::chrono::seconds limit{10};

  played_ranks() : system_{read(settings_)} {
    auto made = cluster::start(system_, settings_.values(), true);
    if (!made)
      FAIL(render(made.error()));
    home_ = std::move(*made);
    host_.emplace(system_, home_->coordinator());
  }

  client& host() { return *host_; }

  gpu_sim::CommInitResponse init(uint32_t ranks) {
    auto made = host_->comm_init(ranks);
    if (!made)
      FAIL(render(made.error()));
    return std::move(*made);
  }

  using rank_program = std::function<caf::error(rank_communicator&, client&)>;

  /// What becomes of each rank.
  std::vector<caf::error> play(const gpu_sim::CommInitResponse& world, const rank_program& program) {
    const auto count = static_cast<uint32_t>(world.devices_size());
    std::vector<rank_communicator> handles; // all of the first epoch, no matter which rank dies
    for (uint32_t rank = 0; rank < count; ++rank) {
      auto handle = rank_communicator::attach(system_, home_->coordinator(), id_of(world), rank);
      if (!handle)
        FAIL(render(handle.error()));
      handles.push_back(std::move(*handle));
    }
    std::vector<caf::error> result(count);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < count; ++rank)
      threads.emplace_back([&, rank] {
        client mine{system_, home_->coordinator()};
        result[rank] = program(handles[rank], mine);
      });
    for (auto& each : threads)
      each.join();
    return result;
  }

  /// Runs `ranks` ranks of a new group without an error. Returns the bytes that the cluster has counted as received.
  uint64_t succeed(uint32_t ranks, const rank_program& program) {
    const auto world = init(ranks);
    for (auto& problem : play(world, program))
      CHECK_MESSAGE(!problem, render(problem));
    uint64_t result = 0;
    auto status = host_->cluster_status();
    REQUIRE(status);
    for (auto& each : status->communicators())
      if (each.comm_id() == world.commid())
        for (auto& way : each.routes())
          result += way.bytes();
    CHECK(!host_->destroy(id_of(world)));
    return result;
  }

private:
  static configuration& read(configuration& settings) {
    auto problem = settings.read(
      {"--device.count=8", "--device.memory-bytes=1048576", "--device.streams=1", "--log.level=error"}, std::nullopt);
    REQUIRE_MESSAGE(!problem, render(problem));
    return settings;
  }

  configuration settings_;
  caf::actor_system system_;
  std::unique_ptr<cluster> home_;
  std::optional<client> host_;
};

/// first, first + step, ...
inline parallel::tensor arange(std::vector<uint64_t> shape, float first = 0, float step = 1) {
  parallel::tensor result{std::move(shape)};
  for (auto& each : result.values())
    each = std::exchange(first, first + step);
  return result;
}

/// As a test of figures writes it; fails the test otherwise.
inline parallel::tensor tensor_of(std::vector<uint64_t> shape, std::vector<float> values) {
  auto made = parallel::tensor::of(std::move(shape), std::move(values));
  REQUIRE(made);
  return std::move(*made);
}

/// An error that says what a rank has in place of what it should have; none where they are equal.
inline caf::error differs(std::span<const float> found, std::span<const float> right) {
  if (std::ranges::equal(found, right))
    return caf::none;
  return make_error(errc::corrupt, fmt::format("[{}], not [{}]", fmt::join(found, " "), fmt::join(right, " ")));
}
inline caf::error differs(const parallel::tensor& found, const parallel::tensor& right) {
  if (found.shape() != right.shape())
    return make_error(errc::corrupt, fmt::format("{}, not {}", found.shape_text(), right.shape_text()));
  return differs(found.values(), right.values());
}
/// The same of an answer.
template <class T, class Right>
caf::error differs(const caf::expected<T>& found, const Right& right) {
  return found ? differs(*found, right) : found.error();
}

} // namespace ringmaster::test
