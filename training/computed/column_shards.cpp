#include "training/computed/column_shards.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/schedule/collective.hpp"

#include <cstring>

namespace ringmaster::training {

namespace {

struct bytes_of_row {
  uint64_t offset, count;
};

bytes_of_row row_of(const column_shards& x, uint32_t index) {
  const auto its = block_of({}, x.row_bytes / x.element_bytes, x.count, index);
  return {its.offset * x.element_bytes, its.count * x.element_bytes};
}

} // namespace

column_shards::column_shards(const training_job& job, const value_tag& x, uint32_t shards)
  : rows(x.samples.count()), row_bytes(whole_elements(job, x) / rows * bytes_of(job.as)),
    element_bytes(bytes_of(job.as)), count(shards) {
  ensure(count > 0 && rows > 0, "a value that is cut has samples, and is cut into shards");
  ensure(row_bytes % element_bytes == 0, "a row is whole elements");
}

uint64_t column_shards::bytes_filled(uint32_t index) const {
  ensure(index < count, "a shard is one of those that the value is cut into");
  return rows * row_of(*this, index).count;
}

uint64_t column_shards::bytes_each() const {
  const auto columns = row_bytes / element_bytes;
  return rows * ((columns + count - 1) / count) * element_bytes;
}

void column_shards::take(uint32_t index, const std::byte* whole, std::byte* shard) const {
  const auto its = row_of(*this, index);
  for (uint64_t i = 0; i < rows; ++i)
    std::memcpy(shard + i * its.count, whole + i * row_bytes + its.offset, its.count);
  ensure(bytes_filled(index) <= bytes_each(), "a shard fits into the memory of the widest");
  std::memset(shard + bytes_filled(index), 0, bytes_each() - bytes_filled(index));
}

void column_shards::put(uint32_t index, const std::byte* shard, std::byte* whole) const {
  const auto its = row_of(*this, index);
  for (uint64_t i = 0; i < rows; ++i)
    std::memcpy(whole + i * row_bytes + its.offset, shard + i * its.count, its.count);
}

} // namespace ringmaster::training
