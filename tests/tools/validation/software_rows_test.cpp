// Software generations against the trainings that each ran, and each constant without the training that it predicts.
#include "tools/validation/software_rows.hpp"

#include "messages/errc.hpp"
#include "planner/models/known_models.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"
#include "tools/options/commands.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

std::vector<software_row> published() {
  auto rows = read_software_rows(std::string{RINGMASTER_SOURCE_DIR}
                                 + "/bench/data/pretraining_by_software/pretraining.csv");
  REQUIRE_MESSAGE(rows.engaged(), render(rows.error()));
  return *rows;
}

std::vector<software_row> published_by(std::string_view software) {
  auto rows = published();
  std::erase_if(rows, [&](auto& x) { return x.software->name != software; });
  REQUIRE(!rows.empty());
  return rows;
}

double off(const software_row& x, double products) {
  return estimate_of(x, products) / x.seconds - 1;
}

/// Of the best plan, operations a second and GPU, in units of 10^12.
double planned_tflops(std::vector<std::string> args) {
  args.emplace_back("--json");
  const auto found = run_command(plan_command(), args);
  REQUIRE_MESSAGE(found.code == 0, found.err);
  const std::string name = "\"tflops_per_gpu\":";
  return std::stod(found.out.substr(found.out.find(name) + name.size()));
}

} // namespace

TEST_CASE("software: each published training is within 12 % of its generation, and without its own model in the fit") {
  for (auto& x : published()) {
    if (x.software->name == "fsdp")
      continue;
    CAPTURE(x.software->name);
    CAPTURE(x.trained.name);
    CAPTURE(x.how.devices());
    CHECK(std::abs(off(x, x.software->products)) < 0.12);
    CHECK(std::abs(off(x, products_without(published(), x))) < 0.12);
  }
}

TEST_CASE("software: late 2024's NeMo is within 5 %, and FSDP's within 17 %, without its own model in the fit") {
  for (auto& x : published_by("nemo-2024"))
    CHECK(std::abs(off(x, products_without(published(), x))) < 0.05);
  for (auto& x : published_by("fsdp"))
    CHECK(std::abs(off(x, products_without(published(), x))) < 0.17);
}

TEST_CASE("software: the constants are what the fit to their rows finds") {
  for (auto* name : {"megatron-2024", "nemo-2024", "fsdp"}) {
    CAPTURE(name);
    CHECK(generation_of(name)->products == doctest::Approx(fit_products(published_by(name))).epsilon(0.002));
  }
}

TEST_CASE("software: the newest is the default, and systems that others were measured on refuse the rest") {
  CHECK(software_generations().front().name == newest_software);
  const auto h100 = *system_of("h100-80g"), a100 = *system_of("a100-80g"), host = *system_of("cpu-2core");
  CHECK(h100.software == newest_software);
  CHECK(a100.software == software_of_a100);
  CHECK(with_generation(h100, *generation_of(newest_software))->matrix_efficiency == h100.matrix_efficiency);
  CHECK(with_generation(a100, *generation_of(software_of_a100))->matrix_efficiency == a100.matrix_efficiency);
  CHECK(generation_of("megatron-1999") == nullptr);
  CHECK(contains(render(with_generation(a100, *generation_of("fsdp")).error()),
                 "the constants of a100-80g are those of megatron-2022: no training there by fsdp was measured"));
  CHECK(contains(render(with_generation(h100, *generation_of(software_of_a100)).error()), "measured on A100 alone"));
  CHECK(contains(render(with_generation(host, *generation_of("fsdp")).error()), "cpu-2core has none"));
}

TEST_CASE("software: what experts cost differs by generation, and older software is never faster") {
  const auto h100 = *system_of("h100-80g");
  auto seconds = [&](const char* model_name, const char* software) {
    auto m = *model_of(model_name);
    training_setting how;
    how.set_degrees(1, 64, 1);
    how.ep = m.experts.count > 0 ? 8 : 1;
    how.global_batch = 512;
    how.zero = 1;
    how.overlapped = true;
    return estimate_iteration(m, *with_generation(h100, *generation_of(software)), how).seconds;
  };
  CHECK(seconds("qwen3-30b-a3b", "megatron-2025") > 1.1 * seconds("qwen3-30b-a3b", "megatron-2026"));
  CHECK(seconds("llama3-8b", "megatron-2025") == seconds("llama3-8b", "megatron-2026"));
  CHECK(seconds("llama3-8b", "nemo-2024") > seconds("llama3-8b", "megatron-2025"));
  CHECK(seconds("llama3-8b", "megatron-2024") > seconds("llama3-8b", "nemo-2024"));
  CHECK(seconds("llama3-8b", "fsdp") > seconds("llama3-8b", "megatron-2024"));
}

TEST_CASE("software: plan finds what was published of Llama 3 405B, Nemotron-4 340B and DeepSeek-V3, within 12 %") {
  auto llama = [](const char* gpus, const char* batch, const char* context, const char* sequence) {
    return planned_tflops({"--model=llama3.1-405b", "--system=h100-80g", "--software=megatron-2024", "--tensor=8",
                           "--pipeline=16", "--schedule=1f1b,interleaved", std::string{"--gpus="} + gpus,
                           std::string{"--global-batch="} + batch, std::string{"--context="} + context,
                           std::string{"--sequence="} + sequence});
  };
  CHECK(llama("8192", "2048", "1", "8192") == doctest::Approx(430).epsilon(0.12));
  CHECK(llama("16384", "2048", "1", "8192") == doctest::Approx(400).epsilon(0.12));
  CHECK(llama("16384", "128", "16", "131072") == doctest::Approx(380).epsilon(0.12));
  CHECK(planned_tflops({"--model=nemotron4-340b", "--system=h100-80g", "--software=megatron-2024", "--tensor=8",
                        "--pipeline=12", "--chunks=8", "--context=1", "--gpus=6144", "--global-batch=2304"})
        == doctest::Approx(0.41 * 989).epsilon(0.12));
  CHECK(planned_tflops({"--model=gpt3-175b", "--sequence=4096", "--vocabulary=131072", "--system=h100-80g",
                        "--software=megatron-2024", "--tensor=8", "--context=1", "--schedule=1f1b,interleaved",
                        "--gpus=96", "--global-batch=1152"})
        == doctest::Approx(0.47 * 989).epsilon(0.12));
  CHECK(planned_tflops({"--model=gpt3-175b", "--sequence=4096", "--vocabulary=131072", "--system=h100-80g",
                        "--software=megatron-2024", "--tensor=8", "--context=1", "--schedule=1f1b,interleaved",
                        "--gpus=4608", "--global-batch=1152"})
        == doctest::Approx(0.42 * 989).epsilon(0.12));
}

TEST_CASE("software: rows that cannot be are refused with the line") {
  const std::string head = "software,model,system,gpus,precision,global batch,micro batch,sequence length,vocabulary,"
                           "fsdp,tensor parallelism,pipeline parallelism,context parallelism,virtual stages,"
                           "expert parallelism,schedule,recomputation,seconds\n";
  auto refusal = [&](const std::string& line) {
    temporary_directory dir;
    auto file = (dir.path() / "rows.csv").string();
    std::ofstream{file} << head << line << "\n";
    auto rows = read_software_rows(file);
    REQUIRE(!rows);
    return render(rows.error());
  };
  CHECK(contains(refusal("fsdp,llama3-8b,h100-80g,8,bf16,16,2,8192,128256,8,3,1,1,1,1,1f1b,none,2.4"),
                 "line 2: 8 GPUs do not divide by tensor 3 x pipeline 1 x context 1"));
  CHECK(contains(refusal("unknown,llama3-8b,h100-80g,8,bf16,16,2,8192,128256,8,1,1,1,1,1,1f1b,none,2.4"),
                 "\"unknown\" is no software"));
  CHECK(contains(refusal("fsdp,llama3-8b,h100-80g,8,bf16,17,2,8192,128256,8,1,1,1,1,1,1f1b,none,2.4"),
                 "a global batch of 17 is no multiple of 2 samples x 8 data-parallel ranks"));
  CHECK(contains(refusal("fsdp,llama3-8b,h100-80g,8,int4,16,2,8192,128256,8,1,1,1,1,1,1f1b,none,2.4"),
                 "\"int4\" is no precision"));
}
