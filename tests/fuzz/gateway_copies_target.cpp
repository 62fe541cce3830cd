// The two messages of gRPC clients that are read without the generated parser: copies and chunks.
#include "gateway/course/copy_wire.hpp"
#include "runtime/invariants/ensure.hpp"
#include "tests/fuzz/fuzz_target.hpp"

#include <algorithm>

namespace ringmaster::fuzz {

namespace {

/// As gRPC receives it: in slices, here of as many bytes as the first one says.
grpc::ByteBuffer received_slices(std::string_view bytes) {
  input_parts parts{bytes};
  const size_t slice_bytes = parts.byte() + size_t{1};
  std::vector<grpc::Slice> slices;
  for (auto left = parts.rest(); !left.empty(); left.remove_prefix(std::min(slice_bytes, left.size()))) {
    const auto piece = left.substr(0, slice_bytes);
    slices.emplace_back(piece.data(), piece.size());
  }
  return {slices.data(), slices.size()};
}

void read_copies(std::string_view bytes) {
  auto copy_bytes = received_slices(bytes);
  if (const auto copy = gateway::read_copy(copy_bytes))
    ensure(copy->data.size() <= bytes.size()
             && copy->to_device == (copy->bytes == copy->data.size() && copy->to_device),
           "a copy has the data that came with it");
  auto chunk_bytes = received_slices(bytes);
  if (auto chunk = gateway::read_chunk(chunk_bytes)) {
    const auto size = chunk->data.size();
    ensure(size <= bytes.size() && chunk->data.take(1).size() == std::min<size_t>(size, 1)
             && chunk->data.take(size).size() == size - std::min<size_t>(size, 1) && chunk->data.size() == 0,
           "a chunk's data are taken once");
  }
}

const fuzz_target fuzz_gateway_copies{"gateway_copies", read_copies};

} // namespace

} // namespace ringmaster::fuzz
