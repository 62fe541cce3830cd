// Devices, operations over them and what their ranks report, as the tests of epochs use them.
#pragma once

#include "runtime/epochs/epoch_change.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace ringmaster::epoch_tests {

inline constexpr uint64_t memory_size = 1u << 16;

inline rank_device device(uint64_t id) {
  rank_device result;
  result.metadata.mutable_deviceid()->set_value(id);
  result.metadata.mutable_minmemaddr()->set_value(id * memory_size);
  result.metadata.mutable_maxmemaddr()->set_value((id + 1) * memory_size);
  return result;
}

inline std::vector<rank_device> devices(uint32_t ranks) {
  std::vector<rank_device> result;
  for (uint64_t id = 1; id <= ranks; ++id)
    result.push_back(device(id));
  return result;
}

inline operation sum_of(const std::vector<rank_device>& ranks, bool in_place = true,
                        proto::CollectiveKind kind = proto::ALL_REDUCE) {
  proto::CollectiveRequest request;
  request.mutable_collective()->set_kind(kind);
  request.mutable_collective()->set_count(4);
  for (auto& x : ranks) {
    request.add_inputs(x.metadata.minmemaddr().value() + 64);
    if (!in_place)
      request.add_outputs(x.metadata.minmemaddr().value() + 1024);
  }
  auto made = make_operation(request, kind == proto::ALL_REDUCE ? "ring" : "naive", ranks);
  REQUIRE(made);
  return std::move(*made);
}

inline proto::RankReport report(device_id device, sequence_number sequence, epoch_number epoch,
                                proto::RankReport::Phase phase) {
  proto::RankReport x;
  x.set_device_id(device.value);
  x.set_sequence(sequence.value);
  x.set_epoch(epoch.value);
  x.set_phase(phase);
  return x;
}

/// A verdict of which only this is known.
inline proto::Verdict seen(const char* evidence) {
  proto::Verdict x;
  x.set_evidence(evidence);
  return x;
}

} // namespace ringmaster::epoch_tests
