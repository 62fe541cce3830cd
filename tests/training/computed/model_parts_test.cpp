#include "training/computed/model_parts.hpp"

#include "tests/support/training/training_jobs.hpp"

#include <doctest/doctest.h>

#include <numeric>

using namespace ringmaster;
using namespace ringmaster::training;

TEST_CASE("model parts: what is put together of other parts has zeros where it has padding") {
  // A linear layer of 8x9 weights and 9 biases: 81 elements, which 4 ranks cut into 21 each, 3 of them padding.
  const auto job = small_job("ddp", 1, 8, 8);
  constexpr uint32_t wanted_count = 4, there_count = 2;
  const auto each = job.layers[0]->elements({});
  REQUIRE(each == 81);
  for (auto kind : {value_kind::weight, value_kind::optimizer_state}) {
    CAPTURE(text_of(kind));
    const auto arrays = kind == value_kind::weight ? 1 : job.update.state_arrays();
    std::map<kept_part, byte_block> there;
    for (uint32_t i = 0; i < there_count; ++i) {
      const kept_part what{kind, 0, {i, there_count}, {}};
      const auto length = bytes_of(job, what) / sizeof(double) / arrays;
      std::vector<double> values(arrays * length, -7); // padding, too, which is in no element of the layer
      for (uint64_t array = 0; array < arrays; ++array)
        for (uint64_t at = 0; at < length && i * length + at < each; ++at)
          values[array * length + at] = static_cast<double>(1000 * array + i * length + at);
      there.emplace(what, byte_block::of(std::move(values)));
    }
    there.emplace(whole_part(kind, 1), byte_block::of(std::vector<double>(each, -8))); // of another layer
    for (uint32_t i = 0; i < wanted_count; ++i) {
      const kept_part wanted{kind, 0, {i, wanted_count}, {}};
      const auto length = bytes_of(job, wanted) / sizeof(double) / arrays;
      std::vector<double> expected(arrays * length), found(arrays * length, -9); // as memory that was used before
      for (uint64_t array = 0; array < arrays; ++array)
        for (uint64_t at = 0; at < length && i * length + at < each; ++at)
          expected[array * length + at] = static_cast<double>(1000 * array + i * length + at);
      assemble_part(job, there, wanted, std::as_writable_bytes(std::span{found}));
      CHECK(found == expected);
    }
  }
}
