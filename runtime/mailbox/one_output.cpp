#include "runtime/mailbox/one_output.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/reduction/reduction.hpp"

#include <cstring>
#include <vector>

namespace ringmaster {

namespace {

void reduce(const reducer& combine, std::span<const std::byte* const> inputs, uint64_t first_byte, uint64_t count,
            std::byte* out) {
  thread_local std::vector<const std::byte*> sources;
  sources.clear();
  for (auto input : inputs)
    sources.push_back(input + first_byte);
  combine.many(sources, out, count, true, static_cast<uint32_t>(inputs.size()));
}

void copy(std::byte* to, const std::byte* from, uint64_t bytes) {
  if (bytes > 0)
    std::memcpy(to, from, bytes);
}

} // namespace

bool has_one_output(proto::CollectiveKind kind) {
  return kind != proto::SEND_RECV; // a pair of ranks does not need the others
}

void output_of(proto::CollectiveKind kind, const plan_request& request, const reducer* combine, uint64_t element_bytes,
               std::span<const std::byte* const> inputs, std::byte* out) {
  auto block = request.count * element_bytes;
  auto own = request.rank * block;
  const bool is_root = request.rank == request.root;
  ensure(inputs.size() == request.world_size && request.rank < inputs.size(), "every rank has its input");
  ensure(combine != nullptr || !reduces(kind), "a reduction has its operation");
  auto from_all = [&](uint64_t at) {
    for (size_t rank = 0; rank < inputs.size(); ++rank)
      copy(out + rank * block, inputs[rank] + at, block);
  };
  switch (kind) {
    case proto::ALL_REDUCE: return reduce(*combine, inputs, 0, request.count, out);
    case proto::REDUCE:
      if (is_root)
        reduce(*combine, inputs, 0, request.count, out);
      return;
    case proto::REDUCE_SCATTER: return reduce(*combine, inputs, own, request.count, out);
    case proto::BROADCAST: return copy(out, inputs[request.root], block);
    case proto::SCATTER: return copy(out, inputs[request.root] + own, block);
    case proto::ALL_GATHER: return from_all(0);
    case proto::GATHER:
      if (is_root)
        from_all(0);
      return;
    case proto::ALL_TO_ALL: return from_all(own);
    default: return; // a barrier moves no data
  }
}

} // namespace ringmaster
