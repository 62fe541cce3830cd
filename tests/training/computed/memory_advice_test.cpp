#include "messages/errc.hpp"
#include "training/computed/free_memory.hpp"

#include "tests/support/training/sociable_layer.hpp"
#include "tests/support/training/training_jobs.hpp"

#include <doctest/doctest.h>

using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

class undivided_layer final : public layer_like {
public:
  using layer_like::layer_like;
  caf::error cannot_share(uint32_t) const override { return ringmaster::invalid("it has no cut"); }
};

std::string advice_of(const training_job& job, uint32_t ranks, bool of_samples) {
  return memory_advice(job, {ranks, setting_of(job.shape)}, of_samples);
}

} // namespace

TEST_CASE("memory_advice: what the model and the strategy allow, and nothing else") {
  const std::string larger = "with a larger --device.memory-bytes";
  auto whole = small_job("ddp", 4, 8, 2);
  CHECK(advice_of(whole, 2, false) == larger + " or under zero3, fsdp, tensor or 1f1b, which shard what takes it");
  CHECK(advice_of(whole, 1, false) == larger);
  CHECK(advice_of(whole, 2, true) == larger + " or with a smaller --micro-batch"); // which none of these shard
  whole.all_at_once = true;
  CHECK(advice_of(whole, 2, true) == larger + ", with a smaller --micro-batch or on more ranks");
  whole.layers[1] = std::make_shared<undivided_layer>(whole.layers[1]);
  CHECK(advice_of(whole, 8, false) == larger + " or under zero3 or fsdp, which shard what takes it"); // 4 layers
}

TEST_CASE("memory_advice: more ranks are named where each would have less") {
  const std::string larger = "with a larger --device.memory-bytes";
  CHECK(advice_of(small_job("1f1b", 4, 8, 1), 2, true) == larger + " or on more ranks");
  CHECK(advice_of(small_job("1f1b", 4, 8, 1), 4, true) == larger);
  CHECK(advice_of(small_job("zero3", 4, 8, 1), 2, false) == larger + " or on more ranks");
  auto in_groups = small_job("hsdp", 4, 8, 1);
  in_groups.shape.parallel.shard_ranks = 2;
  CHECK(advice_of(in_groups, 2, false) == larger);
  auto pairs = small_job("tensor", 4, 8, 1);
  pairs.shape.parallel.tp = 2;
  CHECK(advice_of(pairs, 2, false) == larger);
}

TEST_CASE("memory_advice: of ranks that train with other settings than configured") {
  const std::string larger = "with a larger --device.memory-bytes";
  CHECK(memory_advice(small_job("interleaved", 8, 33, 1), {1, {.stands_in = true}}, true)
        == larger + " or on more ranks");
  auto pairs = small_job("tensor", 4, 8, 1);
  pairs.shape.parallel.tp = 2;
  CHECK(memory_advice(pairs, {1, {{.tp = 1}}}, false) == larger);
}
