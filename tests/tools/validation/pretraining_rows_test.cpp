// Published trainings: how they are read, and how they are predicted.
#include "tools/validation/pretraining_rows.hpp"

#include "messages/errc.hpp"
#include "planner/calibration/calibration.hpp"
#include "planner/models/known_models.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"
#include "tools/validation/pretraining_recipes.hpp"
#include "tools/validation/pretraining_report.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

const std::string training_columns_line
  = "model,system,gpus,precision,global batch,micro batch,sequence length,fsdp,tensor parallelism,pipeline parallelism,"
    "context parallelism,virtual stages,expert parallelism,tokens/s/gpu,model TFLOP/s/gpu,release\n";

pretraining_rows published_rows(const std::string& set) {
  auto rows = read_pretraining_rows(std::string{RINGMASTER_SOURCE_DIR} + "/bench/data/" + set + "/pretraining.csv");
  REQUIRE_MESSAGE(rows.engaged(), render(rows.error()));
  return *rows;
}

pretraining_rows own_rows() {
  return published_rows("gpu_pretraining");
}

std::string refusal_of_trainings(const std::string& lines) {
  test::temporary_directory dir;
  auto file = (dir.path() / "rows.csv").string();
  std::ofstream{file} << lines;
  auto rows = read_pretraining_rows(file);
  REQUIRE(!rows.engaged());
  auto sentence = render(rows.error());
  return sentence.substr(sentence.find("rows.csv"));
}

/// The constants' values, as the fit found them.
std::vector<double> stored_values() {
  std::vector<double> result;
  for (auto& x : pretraining_constants())
    result.push_back(x.value);
  return result;
}

/// Of rows that were not fitted to: those that are held out, or all.
deviation unseen(const pretraining_rows& rows, bool all, bool dense, bool experts) {
  const auto values = stored_values();
  std::vector<double> relative;
  for (size_t i = 0; i < rows.known.size(); ++i)
    if ((all || rows.numbers[i] % 2 == 1) && (rows.known[i].trained.experts.count > 0 ? experts : dense))
      relative.push_back(estimate_of(rows.known[i], values) / rows.known[i].seconds - 1);
  return deviation_of(relative);
}

/// Of the same rows, those whose throughput is predicted further off than this part of it.
size_t count_off(const pretraining_rows& rows, bool all, bool dense, double part) {
  const auto values = stored_values();
  size_t result = 0;
  for (size_t i = 0; i < rows.known.size(); ++i)
    if (auto& x = rows.known[i]; (all || rows.numbers[i] % 2 == 1) && (x.trained.experts.count == 0) == dense)
      result += std::abs(x.seconds / estimate_of(x, values) - 1) > part;
  return result;
}

} // namespace

TEST_CASE("pretraining rows: how much longer trainings with experts took than plan says is as its page has it") {
  const auto values = stored_values();
  std::vector<double> own_way, best;
  for (auto& x : own_rows().known)
    if (x.trained.experts.count > 0) {
      own_way.push_back(x.seconds / estimate_of(as_planned(x), values));
      best.push_back(x.seconds / best_plan_of(x));
    }
  auto check = [](std::vector<double>& ratios, double median, double worst) {
    std::ranges::sort(ratios);
    REQUIRE(ratios.size() == 26);
    CHECK(std::abs((ratios[12] + ratios[13]) / 2 - median) < 0.05);
    CAPTURE(ratios.back());
    CHECK(std::abs(ratios.back() - worst) < 0.05);
  };
  check(own_way, published_beside_plans_median, published_beside_plans_worst);
  check(best, published_beside_best_median, published_beside_best_worst);
}

TEST_CASE("pretraining rows: in which formats models with experts and without were trained is as plan's page has it") {
  std::set<std::pair<number_format, bool>> published;
  for (auto& x : own_rows().known)
    published.emplace(x.how.computed_in, x.trained.experts.count > 0);
  for (auto format : {number_format::bf16, number_format::fp8, number_format::mxfp8, number_format::nvfp4})
    for (bool experts : {false, true})
      CHECK(published.contains({format, experts}) == was_published(format, experts));
}

// Else `validate` would call none of them calibrated on, and none held out. Fit the constants again, then change it.
TEST_CASE("pretraining rows: the file has the fingerprint of the rows to which the constants were fitted") {
  CHECK(own_rows().fingerprint == calibrated_fingerprint);
  CHECK(published_rows("gpu_pretraining_further").fingerprint != calibrated_fingerprint);
}

TEST_CASE("pretraining rows: the constants are those that the fit to every other row finds") {
  const auto values = fit_pretraining_constants(fitted_rows(own_rows()));
  for (size_t i = 0; i < values.size(); ++i) {
    CAPTURE(pretraining_constants()[i].name);
    CHECK(std::abs(values[i] / pretraining_constants()[i].value - 1) < 2e-3);
  }
}

TEST_CASE("pretraining rows: what was not fitted to is predicted as docs/cost_models.md says") {
  const auto rows = own_rows();
  CHECK(rows.skipped == std::vector<std::string>{"DeepSeekV4 Flash"});
  const auto dense = unseen(rows, false, true, false), experts = unseen(rows, false, false, true);
  CHECK(dense.count == 6);
  CHECK(dense.mean_absolute < 0.07);
  CHECK(std::abs(dense.worst) < 0.15);
  CHECK(experts.count == 12);
  CHECK(experts.mean_absolute < 0.15);
  CHECK(std::abs(experts.worst) < 0.35);
  CHECK(count_off(rows, false, true, 0.15) == 0);
  CHECK(count_off(rows, false, false, 0.35) == 0);
  CHECK(unseen(rows, false, true, true).mean_absolute < 0.1);
}

TEST_CASE("pretraining rows: further rows of the source are predicted as docs/cost_models.md says") {
  const auto rows = published_rows("gpu_pretraining_further");
  CHECK(rows.skipped.empty());
  const auto dense = unseen(rows, true, true, false), experts = unseen(rows, true, false, true);
  CHECK(dense.count == 64);
  CHECK(dense.mean_absolute < 0.07);
  CHECK(std::abs(dense.worst) < 0.15);
  CHECK(count_off(rows, true, true, 0.15) == 0);
  CHECK(experts.count == 92);
  CHECK(experts.mean_absolute < 0.15);
  CHECK(std::abs(experts.worst) < 0.35);
  CHECK(count_off(rows, true, false, 0.35) == 1); // gpt-oss on B300, over the network
  CHECK(unseen(rows, true, true, true).mean_absolute < 0.1);
}

TEST_CASE("pretraining rows: those that the source contradicts are taken as their recipe, or its table, has them") {
  auto corrected = [](const pretraining_rows& rows) {
    return std::ranges::count(rows.known, true, &published_training::corrected);
  };
  const auto rows = own_rows();
  CHECK(corrected(rows) == 6);
  CHECK(corrected(published_rows("gpu_pretraining_further")) == 5);
  auto of = [&](const char* model, const char* system, const char* release) {
    auto at = std::ranges::find_if(rows.known, [&](auto& x) {
      return x.model == model && x.system == system && x.release == release;
    });
    REQUIRE(at != rows.known.end());
    CHECK(at->corrected);
    return *at;
  };
  const auto small = of("Qwen3_30B_a3B", "DGX-H100", "25.11"); // the row says 2 samples and 24 chunks
  CHECK(small.how.micro_batch == 1);
  CHECK(small.how.chunks == 12);
  CHECK(small.how.schedule == pipeline_schedule::interleaved_1f1b);
  const auto whole = of("Qwen3_30B_a3B", "DGX-H100", "26.02.01"); // two stages, experts on 8
  CHECK(whole.how.pp == 1);
  CHECK(whole.how.dp == 16);
  CHECK(whole.how.schedule == pipeline_schedule::one_f_one_b);
  CHECK(of("DeepSeekV3 (w/ MTP)", "DGX-B200", "25.11").how.computed_in == number_format::mxfp8); // fp8
  CHECK(of("Qwen3_235B_a22B", "DGX-B300", "26.02.01").ran->hides_dispatch); // its own release's recipe does not
}

TEST_CASE("pretraining rows: what cannot have been published is refused with the line") {
  auto refusal = [](const std::string& line) { return refusal_of_trainings(training_columns_line + line + "\n"); };
  CHECK(contains(refusal_of_trainings("model,system\n"), "rows.csv, line 1: there is no column \"gpus\"; "));
  CHECK(refusal("LLAMA3_8B,DGX-H100,4294967295,FP8,1,1,8192,8,65536,65536,1,1,1,14451,744,25.11")
        == "rows.csv, line 2: \"4294967295\" is no gpus (a whole number above 0)");
  CHECK(refusal("LLAMA3_8B,DGX-H100,8,FP8,1,1,8192,8,65536,65536,1,1,1,14451,744,25.11")
        == "rows.csv, line 2: 8 GPUs do not divide by tensor 65536 x pipeline 65536 x context 1");
  CHECK(refusal("LLAMA3_8B,DGX-H100,8,FP9,128,1,8192,8,1,1,1,1,1,14451,744,25.11")
        == "rows.csv, line 2: \"FP9\" is no precision; there are BF16, FP8, MXFP8, NVFP4");
  CHECK(refusal("LLAMA3_8B,DGX-H100,8,FP8,128,1,8192,8,3,1,1,1,1,14451,744,25.11")
        == "rows.csv, line 2: 8 GPUs do not divide by tensor 3 x pipeline 1 x context 1");
  CHECK(refusal("LLAMA3_8B,DGX-H100,8,FP8,129,1,8192,8,1,1,1,1,1,14451,744,25.11")
        == "rows.csv, line 2: a global batch of 129 is no multiple of 1 samples x 8 data-parallel ranks");
  CHECK(refusal("Qwen3_30B_a3B,DGX-B200,8,MXFP8,512,1,4096,0,1,1,1,1,3,9691,223,26.02")
        == "rows.csv, line 2: 128 experts on 8 GPUs of a stage do not divide by 3");
  CHECK(refusal("LLAMA3_8B,DGX-H100,8,FP8,128,1,8192,8,1,1,1,1,1,none,744,25.11")
        == "rows.csv, line 2: \"none\" is no tokens/s/gpu (a number above 0)");
  CHECK(refusal("LLAMA3_8B,DGX-H100,8,FP8,128,1,8192,8,1,1,1,1,1,14451,744,soon")
        == "rows.csv, line 2: \"soon\" is no release, such as 25.11");
}

TEST_CASE(
  "pretraining recipes: the software that ran a model with experts depends on model, system, precision and release") {
  auto ran = [](const char* model, const char* system, number_format in, double months) {
    return software_of(*model_of(model), *system_of(system), in, months);
  };
  const auto before = ran("deepseek-v3", "gb300-nvl72", number_format::mxfp8, 5.5);
  CHECK(before.graphs == launch_graphs::none);
  CHECK(!before.hides_dispatch);
  const auto after = ran("deepseek-v3", "gb300-nvl72", number_format::mxfp8, 7);
  CHECK(after.graphs == launch_graphs::whole);
  CHECK(after.hides_dispatch);
  CHECK(ran("deepseek-v3", "gb300-nvl72", number_format::bf16, 7).graphs == launch_graphs::parts);
  CHECK(ran("qwen3-30b-a3b", "b300", number_format::mxfp8, 7).graphs == launch_graphs::whole);
  CHECK(ran("gpt-oss-120b", "b300", number_format::mxfp8, 7).graphs == launch_graphs::parts);
  CHECK(ran("qwen3-235b-a22b", "h100-80g", number_format::fp8, 0).hides_dispatch);
  CHECK(!ran("qwen3-235b-a22b", "h100-80g", number_format::fp8, 3.5).dispatches_fused);
  CHECK(!ran("qwen3-235b-a22b", "b300", number_format::mxfp8, 5).dispatches_fused);
  CHECK(ran("qwen3-235b-a22b", "b300", number_format::mxfp8, 5.5).dispatches_fused);
  CHECK(ran("qwen3-30b-a3b", "h100-80g", number_format::fp8, 3).hides_dispatch);
  CHECK(!ran("qwen3-30b-a3b", "h100-80g", number_format::fp8, 3.5).hides_dispatch);
  CHECK(ran("mixtral-8x7b", "gb200-nvl72", number_format::bf16, 0).graphs == launch_graphs::parts); // as the others
  CHECK(ran("mixtral-8x7b", "h100-80g", number_format::bf16, 0).graphs == launch_graphs::none);
}

TEST_CASE("pretraining rows: dispatch by all_to_all, or beside other work, is launched longer") {
  const auto values = stored_values();
  const auto rows = own_rows();
  auto at = std::ranges::find_if(rows.known, [](auto& x) { // on H100, where launching is what takes so long
    return x.model == "Qwen3_30B_a3B" && x.system == "DGX-H100" && x.release == "25.11";
  });
  REQUIRE(at != rows.known.end());
  REQUIRE(at->ran->hides_dispatch);
  REQUIRE(!at->ran->dispatches_fused);
  auto fused = *at, apart = *at;
  fused.ran->dispatches_fused = true;
  apart.ran->hides_dispatch = false;
  CHECK(estimate_of(fused, values) < 0.8 * estimate_of(*at, values));
  CHECK(estimate_of(apart, values) < 0.9 * estimate_of(*at, values));
}

TEST_CASE("pretraining rows: layers take longer beside FSDP's collectives, unless these have registered buffers") {
  const auto values = stored_values();
  const auto rows = own_rows();
  size_t sharded = 0, registered = 0;
  for (auto& x : rows.known)
    if (x.how.shard_ranks > 0) {
      ++sharded;
      registered += x.ran->registers_buffers;
      auto with = x, without = x;
      with.ran->registers_buffers = true;
      without.ran->registers_buffers = false;
      CHECK(estimate_of(without, values) > 1.02 * estimate_of(with, values));
      CHECK(estimate_of(without, values) < 1.15 * estimate_of(with, values));
    }
  CHECK(sharded == 2);
  CHECK(registered == 1); // 8B on H100
}

TEST_CASE("pretraining rows: a training whose software hides no dispatch, or launches more, is predicted slower") {
  const auto rows = own_rows();
  const auto values = stored_values();
  size_t with_whole_graphs = 0;
  for (auto& x : rows.known)
    if (x.trained.experts.count > 0 && x.ran->graphs == launch_graphs::whole) {
      ++with_whole_graphs;
      auto exposed = x, launched = x;
      exposed.ran->hides_dispatch = false;
      launched.ran->graphs = launch_graphs::none;
      CHECK(estimate_of(exposed, values) > 1.01 * estimate_of(x, values));
      CHECK(estimate_of(launched, values) > 1.01 * estimate_of(x, values));
    }
  CHECK(with_whole_graphs >= 4);
}
