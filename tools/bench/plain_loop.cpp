#include "tools/bench/plain_loop.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/reduction/bulk_copy.hpp"
#include "runtime/reduction/compiled_for.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

namespace ringmaster {

namespace {

constexpr uint64_t tile_count = 1024; ///< Floats whose sums stay in the L1 cache.
constexpr uint64_t line_count = cache_line_bytes / sizeof(float);

template <size_t Inputs>
struct addition {
  [[gnu::always_inline]] static inline void run(float* __restrict sums, const float* const* from, uint64_t at,
                                                uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      auto sum = sums[i];
      for (size_t k = 0; k < Inputs; ++k)
        sum += from[k][at + i];
      sums[i] = sum;
    }
  }
};

void add_up(float* sums, const std::vector<const float*>& from, uint64_t at, uint64_t count) {
  static const auto add_8 = compiled<addition<8>>::at(best_instruction_set());
  static const auto add_2 = compiled<addition<2>>::at(best_instruction_set());
  static const auto add_1 = compiled<addition<1>>::at(best_instruction_set());
  std::fill_n(sums, count, 0.0f);
  for (size_t done = 0; done < from.size();) {
    auto left = from.size() - done;
    (left >= 8 ? add_8 : left >= 2 ? add_2 : add_1)(sums, from.data() + done, at, count);
    done += left >= 8 ? 8 : left >= 2 ? 2 : 1;
  }
}

void run(const plain_transfer& x, uint32_t part, uint32_t parts, bool past_caches) {
  auto border = [&](uint32_t p) { return p == parts ? x.count : x.count * p / parts / line_count * line_count; };
  alignas(cache_line_bytes) float sums[tile_count];
  for (auto at = border(part), end = border(part + 1); at < end; at += tile_count) {
    auto count = std::min(tile_count, end - at);
    const float* source = x.from.front() + at;
    if (x.from.size() > 1) {
      add_up(sums, x.from, at, count);
      source = sums;
    }
    for (auto* to : x.to) {
      auto* out = reinterpret_cast<std::byte*>(to + at);
      auto* in = reinterpret_cast<const std::byte*>(source);
      past_caches ? stream_bytes(out, in, count * sizeof(float)) : void(std::memcpy(out, in, count * sizeof(float)));
    }
  }
}

} // namespace

std::vector<plain_transfer> transfers_of(proto::CollectiveKind kind, const plan_request& request,
                                         const std::vector<const float*>& inputs, const std::vector<float*>& outputs) {
  ensure(inputs.size() == request.world_size && outputs.size() == request.world_size, "each rank has its buffers");
  std::map<std::tuple<bool, uint32_t, uint64_t>, plain_transfer> by_source;
  for (uint32_t rank = 0; rank < request.world_size; ++rank)
    for (uint64_t first = 0; first < output_count(kind, request, rank); first += request.count) {
      auto source = meaning_of(kind, request, rank, first);
      auto& x = by_source[{source.all_ranks, source.rank, source.index}];
      x.count = request.count;
      if (x.from.empty())
        for (uint32_t r = 0; r < request.world_size; ++r)
          if (source.all_ranks || r == source.rank)
            x.from.push_back(inputs[r] + source.index);
      if (source.all_ranks || outputs[rank] + first != x.from.front())
        x.to.push_back(outputs[rank] + first);
    }
  std::vector<plain_transfer> result;
  for (auto& [source, x] : by_source) {
    ensure(!x.from.empty(), "each block of an output has a source");
    result.push_back(std::move(x));
  }
  return result;
}

void run_part(const std::vector<plain_transfer>& work, uint32_t part, uint32_t parts, bool past_caches) {
  ensure(part < parts, "a part is one of the parts");
  for (auto& x : work)
    run(x, part, parts, past_caches);
  if (past_caches)
    finish_streaming();
}

} // namespace ringmaster
