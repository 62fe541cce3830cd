#include "planner/systems/pretraining_software.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

gpu_system system_with(const std::string& name, std::string_view software) {
  auto on = system_of(name);
  REQUIRE(on);
  auto result = with_generation(*on, *generation_of(software));
  REQUIRE(result);
  return *result;
}

} // namespace

TEST_CASE("software generation: an error was measured where such trainings were compared") {
  struct known {
    const char* system;
    std::string_view software;
    estimated_training training;
    double error;
  };
  const estimated_training dense{}, sparse{.experts = true}, dense_fp8{.computed_in = number_format::fp8},
    sparse_fp8{.experts = true, .computed_in = number_format::fp8}, unfused{.flash = false};
  for (auto& x : {known{"h100-80g", newest_software, sparse, 0.08},
                  {"h100-80g", newest_software, dense_fp8, 0.05},
                  {"b200", "megatron-2025", dense_fp8, 0.05},
                  {"h100-80g", "nemo-2024", dense, 0.02},
                  {"h100-80g", "megatron-2024", dense, 0.08},
                  {"h800-80g", "deepseek-2024", sparse_fp8, 0.07},
                  {"h200-141g", "fsdp", dense_fp8, 0.08},
                  {"a100-80g", software_of_a100, unfused, 0.05}}) {
    CAPTURE(x.system);
    CAPTURE(x.software);
    const auto found = error_of_estimates(system_with(x.system, x.software), x.training);
    CHECK(!found.assumed_because);
    CHECK(found.tie == doctest::Approx(x.error));
    CHECK(found.least == doctest::Approx(1 - x.error));
    CHECK(found.most == doctest::Approx(1 + x.error));
  }
}

TEST_CASE("software generation: an error is assumed where nothing was compared, with the reason") {
  auto because = [](const gpu_system& on, const estimated_training& x, double error) {
    const auto found = error_of_estimates(on, x);
    CHECK(found.tie == doctest::Approx(error));
    REQUIRE(found.assumed_because);
    return *found.assumed_because;
  };
  CHECK(because(system_with("mi300x", newest_software), {}, 0.2)
        == "no training on mi300x by megatron-2026 was compared");
  CHECK(because(system_with("b200", "megatron-2024"), {}, 0.2) == "no training on b200 by megatron-2024 was compared");
  CHECK(because(system_with("h100-80g", "megatron-2024"), {.experts = true}, 0.2)
        == "no training of a model with experts by megatron-2024 was compared");
  CHECK(because(system_with("h100-80g", "nemo-2024"), {.computed_in = number_format::fp8}, 0.2)
        == "no training in fp8 by nemo-2024 was compared");
  CHECK(because(system_with("h100-80g", "megatron-2025"), {}, 0.1)
        == "no training of a model without experts in bf16 by megatron-2025 was compared");
  CHECK(because(system_with("h100-80g", newest_software), {.experts = true, .flash = false}, 0.2)
        == "unfused attention's part of the peak is set by hand");
  CHECK(because(system_with("a100-80g", software_of_a100), {.experts = true}, 0.2)
        == "no training of a model with experts by megatron-2022 was compared");
  CHECK(because(*system_of("cpu-2core"), {}, 0.2) == "no training on cpu-2core was compared");
}

TEST_CASE("software generation: on A100 with flash attention trainings take longer than estimates, never less") {
  const auto found = error_of_estimates(system_with("a100-80g", software_of_a100), {});
  CHECK(!found.assumed_because);
  CHECK(1 - 1 / found.least == doctest::Approx(0.08)); // 8 to 31 % too fast
  CHECK(1 - 1 / found.most == doctest::Approx(0.31));
  CHECK(found.tie == doctest::Approx(0.92 / 0.69 - 1));
}
