#pragma once

#include "client/client.hpp"
#include "client/rank_communicator.hpp"

#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace ringmaster::parallel {

/// One rank's end of a group of ranks that exchange arrays: a communicator with arrays in place of addresses. A call
/// copies its input to the device's memory, the devices move it, and the result is copied back. The k-th call of a rank
/// matches the k-th of all others; one thread at a time.
///
/// Numbers are float32; a block is one rank's part. Errors of every call: invalid_argument where the ranks' calls do
/// not match, with ranks and values, and nothing has been moved; device_lost, with the reason, where a rank has been
/// lost since the handle was made or updated: a result without its part would be a different one; timed_out, with the
/// missing rank; those of the client for the device's memory.
class tensor_group {
public:
  /// Both outlive it. `limit`: for all ranks to have made a call, and for it to have ended.
  tensor_group(rank_communicator& self, client& host, caf::timespan limit = std::chrono::seconds{30})
    : self_(self), host_(host), limit_(limit) {}
  ~tensor_group();
  tensor_group(const tensor_group&) = delete;
  tensor_group& operator=(const tensor_group&) = delete;

  uint32_t rank() const noexcept { return self_.rank(); }
  uint32_t size() const noexcept { return self_.size(); }
  /// Bytes that this rank has sent to others so far, by the algorithms' schedules; repetitions after a loss are not
  /// counted.
  uint64_t bytes_sent() const noexcept { return bytes_sent_; }

  /// The library's collectives, by a ring: of N ranks each sends (N-1)/N of the larger of its input and output;
  /// all_reduce sends twice as much. Sums; the bits are the same on all ranks.
  caf::expected<std::vector<float>> all_reduce(std::span<const float> x);
  /// N blocks, in the order of their ranks.
  caf::expected<std::vector<float>> all_gather(std::span<const float> block);
  /// Of N blocks, one behind the other: the own one's sums. Errors: also where they are not equal.
  caf::expected<std::vector<float>> reduce_scatter(std::span<const float> blocks);
  /// Block r goes to rank r, and the answer's block s comes from rank s. By pairs. Errors: as before.
  caf::expected<std::vector<float>> all_to_all(std::span<const float> blocks);

private:
  using calls_made = std::function<work(const rank_buffers&, const call_options&)>;

  caf::expected<std::vector<float>> collective(proto::CollectiveKind kind, std::span<const float> input);
  /// Puts the input into the device's memory, makes the calls and reads the output back.
  caf::expected<std::vector<float>> staged(std::string_view what, std::span<const float> input, uint64_t count,
                                           const calls_made& make);
  caf::error reserve(uint64_t bytes);
  caf::error wait_for(const work& calls, std::string_view what);

  rank_communicator& self_;
  client& host_;
  caf::timespan limit_;
  uint64_t address_ = 0, bytes_ = 0; ///< Of the device's memory, for what comes and goes; kept between calls.
  uint64_t bytes_sent_ = 0;
};

} // namespace ringmaster::parallel
