#include "tools/bench/memory_limit.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/memory/device_memory.hpp"
#include "runtime/memory/memory_directory.hpp"
#include "runtime/reduction/bulk_copy.hpp"
#include "runtime/reduction/compiled_for.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <sys/mman.h>
#include <thread>
#include <tuple>

namespace ringmaster {

namespace {

constexpr uint64_t page_bytes = 4096;
constexpr std::chrono::milliseconds sample_max{100}; ///< More operations would not change the result.
constexpr uint64_t cached_max = 8u << 20;            ///< Data of this size stays in the caches for the next operation.
const uint32_t crew_size = std::max(1u, std::thread::hardware_concurrency());

/// Runs work(part, parts) for all parts on all cores, repeatedly. A free thread takes the next part. Threads spin, so
/// that memory is measured and not waking up.
template <class Work>
class crew {
public:
  crew(uint32_t parts, Work work) : parts_(parts), next_(parts), work_(std::move(work)) {
    for (uint32_t i = 1; i < crew_size; ++i)
      others_.emplace_back([this] {
        while (!stop_)
          take();
      });
  }

  ~crew() {
    stop_ = true;
    for (auto& x : others_)
      x.join();
  }

  void run() {
    done_ = 0;
    next_ = 0;
    take();
    while (done_ != parts_) {
    }
    ensure(next_ >= parts_, "all parts were taken");
  }

private:
  void take() {
    while (next_ < parts_)
      if (auto part = next_++; part < parts_) {
        work_(part, parts_);
        ++done_;
      }
  }

  const uint32_t parts_;
  std::atomic<uint32_t> next_, done_{0};
  std::atomic<bool> stop_{false};
  Work work_;
  std::vector<std::thread> others_;
};

/// The median of the samples, of an operation, as in the bench.
double median_us(const std::vector<plain_transfer>& work, uint32_t parts, bool past_caches, uint32_t samples,
                 uint32_t operations) {
  crew all{parts, [&](uint32_t part, uint32_t of) { run_part(work, part, of, past_caches); }};
  ensure(samples > 0 && operations > 0, "a median needs samples of operations");
  std::vector<double> times;
  for (uint32_t i = 0; i < samples; ++i) {
    const auto start = std::chrono::steady_clock::now();
    auto now = start;
    uint32_t done = 0;
    for (; done < operations && now - start < sample_max; ++done) {
      all.run();
      now = std::chrono::steady_clock::now();
    }
    times.push_back(std::chrono::duration<double, std::micro>{now - start}.count() / done);
  }
  auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

using area = std::shared_ptr<std::byte>;

/// In a file like the devices' memory, which is unlinked at once.
caf::expected<area> in_file(const std::filesystem::path& directory, uint64_t bytes) {
  device_memory::options opts{device_id{1}, directory / "memory-limit", page_bytes, bytes};
  auto memory = device_memory::open(opts);
  std::error_code ignored;
  std::filesystem::remove(opts.file, ignored);
  if (!memory)
    return std::move(memory.error());
  TRY(range, (*memory)->at(page_bytes, bytes));
  (*memory)->expect_bytes(*range);
  return area{std::move(*memory), range->data()};
}

caf::expected<area> in_huge_pages(uint64_t bytes) {
  auto* mapping = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return make_error(errc::io_error, fmt::format("cannot map {} bytes to measure what memory allows", bytes));
  ::madvise(mapping, bytes, MADV_HUGEPAGE); // a system without them uses plain pages
  return area{static_cast<std::byte*>(mapping), [bytes](std::byte* x) { ::munmap(x, bytes); }};
}

/// The inputs and outputs of all ranks; in place, a rank has one area for both.
struct rank_areas {
  std::vector<area> owned;
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
};

uint64_t touched_bytes(const limited_collective& x) {
  uint64_t elements = 0;
  for (uint32_t rank = 0; rank < x.request.world_size; ++rank)
    elements += input_count(x.kind, x.request, rank) + output_count(x.kind, x.request, rank);
  return elements * sizeof(float);
}

/// Different numbers, since some processors write lines of zeros several times faster.
void fill(std::byte* area_start, uint64_t bytes) {
  auto floats = reinterpret_cast<float*>(area_start);
  for (uint64_t i = 0; i < bytes / sizeof(float); ++i)
    floats[i] = static_cast<float>(i % 8191 + 1);
}

caf::expected<rank_areas> areas_for(const limited_collective& x, bool files) {
  rank_areas result;
  auto directory = memory_directory::open({}, files ? 2 * touched_bytes(x) : 0); // a device's file is twice as long
  if (!directory)
    return std::move(directory.error());
  auto make = [&](uint64_t elements) -> caf::expected<float*> {
    auto bytes = std::max<uint64_t>(elements, 1) * sizeof(float);
    TRY(made, files ? in_file(directory->path(), bytes) : in_huge_pages(bytes));
    fill(made->get(), bytes);
    result.owned.push_back(std::move(*made));
    return reinterpret_cast<float*>(result.owned.back().get());
  };
  for (uint32_t rank = 0; rank < x.request.world_size; ++rank) {
    auto start = x.in_place ? in_place(x.kind, x.request, rank) : placement{};
    auto in = input_count(x.kind, x.request, rank), out = output_count(x.kind, x.request, rank);
    auto input = make(x.in_place ? std::max(start.input + in, start.output + out) : in);
    TRY(output, x.in_place || !input ? input : make(out));
    result.inputs.push_back(*input + start.input);
    result.outputs.push_back(*output + start.output);
  }
  ensure(result.inputs.size() == x.request.world_size && result.outputs.size() == x.request.world_size,
         "each rank has an input and an output");
  return result;
}

} // namespace

caf::expected<memory_limit> measure_memory_limit(const limited_collective& x, uint32_t samples, uint32_t operations) {
  const auto cached = touched_bytes(x) <= cached_max;
  const auto parts = cached ? crew_size : 16 * crew_size; // cached data stays on its core; large work is balanced
  memory_limit best;
  caf::error problem;
  for (auto files : {true, false}) {
    auto areas = areas_for(x, files);
    if (!areas) {
      problem = std::move(areas.error());
      continue;
    }
    auto work = transfers_of(x.kind, x.request, areas->inputs, areas->outputs);
    for (auto past_caches : {false, true}) {
      if (past_caches && cached)
        continue;
      auto time = median_us(work, parts, past_caches, samples, operations);
      if (best.how.empty() || time < best.time_us)
        best = {time, std::string{files ? "device files" : "huge pages"} + (past_caches ? ", past the caches" : "")};
    }
  }
  if (best.how.empty())
    return problem;
  return best;
}

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
