#include "runtime/samples/sample_collective.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/collective.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

namespace ringmaster {

namespace {

bool same_on_all_ranks(proto::CollectiveKind kind) {
  return kind == proto::ALL_REDUCE || kind == proto::ALL_GATHER || kind == proto::BROADCAST;
}

} // namespace

sample_collective::sample_collective(proto::CollectiveKind kind, plan_request request, proto::DataType type,
                                     gpu_sim::ReduceOp op, uint64_t salt, std::vector<uint32_t> members)
  : kind_(kind), request_(std::move(request)), element_bytes_(size_of(type)),
    values_(*find_datatype(type), reduces(kind) ? std::optional{op} : std::nullopt,
            members.empty() ? request_.world_size : *std::max_element(members.begin(), members.end()) + 1, salt),
    members_(std::move(members)) {
  ensure(members_.empty() || members_.size() == request_.world_size, "each rank has a member");
  if (!members_.empty())
    return;
  members_.resize(request_.world_size);
  std::iota(members_.begin(), members_.end(), 0u);
}

std::vector<std::byte> sample_collective::input(uint32_t rank) const {
  ensure(rank < members_.size(), "an input is of a rank of the group");
  const auto count = input_count(kind_, request_, rank);
  std::vector<std::byte> result(count * element_bytes_);
  values_.input(members_[rank], 0, count, result.data());
  return result;
}

std::vector<sample_collective::source_run> sample_collective::sources_of(uint32_t rank) const {
  std::vector<source_run> result;
  switch (kind_) {
    case proto::ALL_GATHER:
    case proto::GATHER: {
      const auto cut = blocks::of(kind_, request_, rank);
      for (uint32_t from = 0; from < request_.world_size; ++from)
        result.push_back({from, 0, cut.count(from)});
      return result;
    }
    case proto::ALL_TO_ALL: {
      const auto cut = blocks::received(request_, rank);
      const bool even = request_.counts.empty();
      for (uint32_t from = 0; from < request_.world_size; ++from)
        result.push_back({from, even ? rank * request_.count : blocks::of(kind_, request_, from).start(rank),
                          cut.count(from)});
      return result;
    }
    case proto::SCATTER: {
      const auto cut = blocks::of(kind_, request_, rank);
      return {{request_.root, cut.start(rank), cut.count(rank)}};
    }
    default: return {{request_.root, 0, output_count(kind_, request_, rank)}};
  }
}

void sample_collective::expect_moved(uint32_t rank, uint64_t first, uint64_t count) {
  const auto end = first + count;
  uint64_t at = 0; // in the output
  for (const auto& run : sources_of(rank)) {
    const auto from = std::max(first, at), until = std::min(end, at + run.count);
    if (from < until)
      values_.input(members_[run.rank], run.index + (from - at), until - from,
                    expected_.data() + (from - first) * element_bytes_);
    at += run.count;
  }
  ensure(at >= end, "the output has the elements that are compared");
}

void sample_collective::expect(uint32_t rank, uint64_t first, uint64_t count) {
  if (expected_first_ == first && expected_count_ == count && (expected_rank_ == rank || same_on_all_ranks(kind_)))
    return;
  expected_.resize(count * element_bytes_);
  if (kind_ == proto::REDUCE_SCATTER)
    values_.reduced(members_, blocks::of(kind_, request_, rank).start(rank) + first, count, expected_.data());
  else if (reduces(kind_))
    values_.reduced(members_, first, count, expected_.data());
  else
    expect_moved(rank, first, count);
  expected_rank_ = rank;
  expected_first_ = first;
  expected_count_ = count;
}

uint64_t sample_collective::count_wrong(uint32_t rank, uint64_t first, uint64_t count, const std::byte* found) {
  if (count == 0)
    return 0;
  ensure(rank < members_.size() && found != nullptr, "an output is of a rank of the group");
  expect(rank, first, count);
  if (std::memcmp(found, expected_.data(), expected_.size()) == 0)
    return 0;
  uint64_t wrong = 0;
  for (uint64_t at = 0; at < expected_.size(); at += element_bytes_)
    wrong += std::memcmp(found + at, expected_.data() + at, element_bytes_) != 0 ? 1 : 0;
  return wrong;
}

} // namespace ringmaster
