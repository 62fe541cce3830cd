#include "runtime/training/computed/memory_advice.hpp"

#include "tests/support/training/sociable_layer.hpp"
#include "tests/support/training/training_jobs.hpp"

#include <doctest/doctest.h>

using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

class undivided_layer final : public layer_like {
public:
  using layer_like::layer_like;
  std::string cannot_share(uint32_t) const override { return "it has no cut"; }
};

} // namespace

TEST_CASE("memory_advice: what the model and the strategy allow, and nothing else") {
  auto whole = small_job("ddp", 4, 8, 2);
  CHECK(memory_advice(whole, 2, false)
        == "with a larger --device.memory-bytes or under zero3, fsdp, tensor or 1f1b, which shard what takes it");
  CHECK(memory_advice(whole, 1, false) == "with a larger --device.memory-bytes");
  CHECK(memory_advice(whole, 1, true) == "with a larger --device.memory-bytes or with a smaller --micro-batch");
  whole.layers[1] = std::make_shared<undivided_layer>(whole.layers[1]);
  CHECK(memory_advice(whole, 8, true) // 4 layers are no 8 stages
        == "with a larger --device.memory-bytes, under zero3 or fsdp, which shard what takes it or with a smaller "
           "--micro-batch");
  CHECK(memory_advice(small_job("1f1b", 4, 8, 1), 2, true) == "with a larger --device.memory-bytes or on more ranks");
  CHECK(memory_advice(small_job("1f1b", 4, 8, 1), 4, true) == "with a larger --device.memory-bytes");
}
