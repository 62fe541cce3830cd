// What plan says beside the table of plans.
#include "runtime/text/json_field.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"
#include "tools/options/commands.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

outcome answer_to(const std::vector<std::string>& args) {
  return run_command(plan_command(), args);
}

tool_command command_below(const tool_command& x, const std::string& word) {
  for (auto& below : x.below)
    if (below.last_word() == word)
      return below;
  FAIL("there is no command " << word);
  return x;
}

} // namespace

TEST_CASE("plan: what is counted of a model, and what was not calibrated, is said") {
  auto head = [](std::vector<std::string> args) {
    for (auto* arg : {"--gpus=64", "--global-batch=64", "--pipeline=1", "--schedule=1f1b"})
      args.emplace_back(arg);
    return answer_to(args).out;
  };
  auto says = [](const std::string& text, const std::string& part) { return contains(in_one_line(text), part); };
  const auto oss = head({"--model=gpt-oss-120b", "--system=mi300x"});
  CHECK(says(oss, "(116.8 billion parameters, 5.7 active, 5.1 without the embedding) on 64 x mi300x"));
  CHECK(says(oss, "not calibrated: no training on mi300x was measured; what software reaches there is taken as on "
                  "h100-80g; its products are taken at the 51 % of the bf16 peak that were seen, its fp8 by the "
                  "same; the rest is Hopper's"));
  CHECK(says(head({"--model=deepseek-v3", "--system=h100-80g", "--multi-token=2"}),
             "36.6 without the embedding, with 2 modules for further tokens) on"));
  CHECK(!says(head({"--model=llama3-8b", "--system=h100-80g"}), "not calibrated"));
  CHECK(says(head({"--model=llama3-8b", "--system=h100-80g", "--attention=unfused"}),
             "not calibrated: unfused attention's part of the peak is set by hand"));
  CHECK(says(head({"--model=llama3-8b", "--system=a100-80g"}),
             "not calibrated: flash attention's part of the peak is set by hand, and estimates are 8 to 31 % "
             "too fast beside published trainings"));
  CHECK(!says(head({"--model=llama3-8b", "--system=a100-80g", "--attention=unfused"}), "not calibrated"));
  auto json = parse_json(head({"--model=llama3-8b", "--system=h200-141g", "--json"}));
  REQUIRE(json.engaged());
  CHECK(json->at("not_calibrated")
        == "no training on h200-141g was measured; what software reaches there is taken as on h100-80g");
}

TEST_CASE("plan: the page and JSON say which properties of the best plan were never measured") {
  auto answer = [](std::vector<std::string> args, const std::string& model, const std::string& precision) {
    args.insert(args.begin(), {"--model=" + model, "--system=h100-80g", "--precision=" + precision});
    return answer_to(args).out;
  };
  auto says = [](const std::string& text, const std::string& part) { return contains(in_one_line(text), part); };
  const std::vector<std::string> few{"--gpus=64", "--global-batch=64", "--pipeline=1", "--schedule=1f1b"};
  const std::string unfitted = "no training of a model without experts in bf16 was fitted to",
                    casts = "experts in fp8 may be slower than in bf16";
  CHECK(says(answer(few, "llama3-8b", "bf16"), unfitted));
  CHECK(!says(answer(few, "llama3-8b", "fp8"), unfitted));
  CHECK(!says(answer(few, "qwen3-30b-a3b", "bf16"), unfitted));
  CHECK(says(answer(few, "qwen3-30b-a3b", "fp8"), casts));
  CHECK(!says(answer(few, "llama3-8b", "fp8"), casts));
  for (auto* same_rate : {"--software=megatron-2026", "--software=megatron-2025"})
    CHECK_MESSAGE(says(answer({"--gpus=64", "--global-batch=64", same_rate}, "llama3-8b", "bf16"), unfitted),
                  same_rate);
  for (auto* own_rate : {"--software=nemo-2024", "--software=megatron-2024", "--software=fsdp"})
    CHECK_MESSAGE(!says(answer({"--gpus=64", "--global-batch=64", own_rate}, "llama3-8b", "bf16"), unfitted), own_rate);
  const std::string hidden = "no training that shares weights fully over a network was fitted to: of what moves";
  CHECK(says(answer({"--gpus=64", "--global-batch=64", "--schedule=fsdp"}, "llama3-8b", "fp8"), hidden));
  CHECK(!says(answer({"--gpus=8", "--global-batch=64", "--schedule=fsdp"}, "llama3-8b", "fp8"), hidden));
  const auto json = answer({"--gpus=64", "--global-batch=250", "--json"}, "llama3-8b", "bf16");
  CHECK(says(json, "\"notes\":[\"speed of --software megatron-2026: Megatron Core"));
  CHECK(says(json, "\"near_batch\":{\"global_batch\":256,"));
  CHECK(says(json, "more tokens a second: 256 sequences take "));
}

TEST_CASE("plan: what rings of ZeRO 2 take among thousands is said, since it is not told") {
  auto of = [](const std::string& gpus, const std::string& sharding) {
    return in_one_line(answer_to({"--model=llama3-8b", "--system=h100-80g", "--gpus", gpus, "--global-batch", gpus,
                                  "--tensor=1", "--pipeline=1", "--context=1", "--schedule", sharding})
                         .out);
  };
  const std::string note = "the steps of zero2's rings among 4096 ranks are not in its time, as they are in FSDP's: ";
  CHECK(of("4096", "zero2").find(note) != std::string::npos);
  CHECK(of("4096", "zero1").find("rings among") == std::string::npos);
  CHECK(of("16", "zero2").find("rings among") == std::string::npos);
}

TEST_CASE("plan: where none fits or divides it says what would") {
  auto large = answer_to({"--model=llama3.1-405b", "--system=h100-80g", "--gpus=8", "--global-batch=8"});
  CHECK(large.code == 1);
  CHECK(large.out.find("None fits. The nearest lacks") != std::string::npos);
  CHECK(large.out.find("\nIt fits on 96 GPUs.\n") != std::string::npos);
  auto odd = answer_to({"--model=llama3-8b", "--system=h100-80g", "--gpus=97", "--global-batch=8"});
  CHECK(odd.code == 1);
  CHECK(odd.out.find("Numbers of GPUs that do: 72, 80, 96, 112. Global batches that do: 97, 194.\n")
        != std::string::npos);
  auto filtered = answer_to({"--model=llama3-8b", "--system=h100-80g", "--gpus=64", "--global-batch=128", "--tensor=3",
                             "--recompute=full"});
  CHECK(filtered.code == 1);
  CHECK(contains(in_one_line(filtered.out), "among 64 GPUs as the options say; without --tensor some do."));
}

TEST_CASE("plan: a run's days and cost, tables for programs, a picture, and two plans beside each other") {
  test::temporary_directory dir;
  const auto picture = (dir.path() / "front.svg").string(), a = (dir.path() / "a.json").string(),
             b = (dir.path() / "b.json").string();
  std::vector<std::string> args{"--model=llama3-8b", "--system=h100-80g", "--gpus=16", "--global-batch=32"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), args.begin(), args.end());
    return more;
  };
  auto text = answer_to(with({"--tokens=15T", "--price=2.50", "--svg", picture}));
  REQUIRE(text.code == 0);
  for (auto* part : {"tokens/s", "TFLOP/s a GPU", "time in closed form: compute", "memory: weights",
                     "run: 15T tokens in", ",", "cost"})
    CHECK_MESSAGE(contains(in_one_line(text.out), part), part);
  const auto never = answer_to(with({"--tokens=15T", "--gpu-mttf=1s"})).out;
  CHECK(never.find("run: 15T tokens are not trained in any time: see the failures below\n") != std::string::npos);
  CHECK(never.find("Next to nothing is kept: the job fails every 62.5 ms, and a restart takes 5 min\n")
        != std::string::npos);
  const auto drawn = content_of(picture);
  for (auto* part : {"llama3-8b on 16 x h100-80g in bf16, a global batch of 32", ", micro-batch 1, ", ", recompute ",
                     "what a device has for the model: 82 GB", "</svg>"})
    CHECK_MESSAGE(drawn.find(part) != std::string::npos, part);
  auto far = answer_to(with({"--sequence=16384", "--schedule=fsdp"})).out;
  CHECK(far.find("sequences of 16384 are beyond the 8192 positions that llama3-8b, changed was made for\n")
        != std::string::npos);
  CHECK(text.out.find(" positions that ") == std::string::npos);
  auto csv = answer_to(with({"--csv"}));
  CHECK(csv.out.starts_with("list,tensor,context,data,expert,pipeline"));
  CHECK(csv.out.find(",none,") != std::string::npos);  // one stage
  CHECK(csv.out.find(",1,,,\n") != std::string::npos); // it fits, and days were not asked for
  CHECK(answer_to(with({"--csv", "--tokens=1T"})).out.find(",1,,,\n") == std::string::npos);
  std::ofstream{a} << answer_to(with({"--json", "--schedule=1f1b,zero1"})).out;
  args[2] = "--gpus=32";
  std::ofstream{b} << answer_to(with({"--json", "--schedule=1f1b,zero1", "--precision=fp8"})).out;
  auto compared = run_command(command_below(plan_command(), "compare"), {a, b});
  CHECK(compared.code == 0);
  for (auto* part : {"A: llama3-8b on 16 x h100-80g in bf16", "B: llama3-8b on 32 x h100-80g in fp8", ", recompute ",
                     "; simulated ", " Simulated, it takes ", "compute", "GB", ": TP"})
    CHECK_MESSAGE(contains(in_one_line(compared.out), part), part);
  CHECK(longest_line(compared.out) <= 100);
  auto for_programs = run_command(command_below(plan_command(), "compare"), {a, b, "--json"});
  auto parsed = parse_json(for_programs.out);
  REQUIRE(parsed);
  CHECK(for_programs.out.find(R"("gpus":32)") != std::string::npos);
  CHECK(for_programs.out.find(R"("simulated_memory_bytes":)") != std::string::npos);
  CHECK(for_programs.out.find(R"("seconds":[{"part":")") != std::string::npos);
  CHECK(run_command(command_below(plan_command(), "compare"), {a}).code == 2);
  CHECK(run_command(command_below(plan_command(), "compare"), {a, picture}).code == 1);
  std::ofstream{b} << answer_to({"--cost-model=puzzles", "--ranks=2", "--layers=4", "--global-batch=4", "--json"}).out;
  CHECK(run_command(command_below(plan_command(), "compare"), {a, b}).err.find("only a transformer's are compared")
        != std::string::npos);
}

TEST_CASE("plan report: the front has no plan that does not fit as simulated") {
  // With micro-batches of 16 the closed form is 2 % short, and what is simulated is too large; with those of 4 it fits.
  temporary_directory here;
  const auto file = here.path() / "small.json";
  std::ofstream{file} << R"({"like": "b300", "memory_bytes": 72.2e9, "reserved_bytes": 0})";
  const auto out = answer_to({"--model=deepseek-v3", "--system=" + file.string(), "--gpus=64", "--global-batch=256",
                              "--sequence=1024", "--tensor=1", "--context=4", "--pipeline=1", "--micro-batch=4,8,16",
                              "--recompute=full", "--expert=64", "--schedule=fsdp", "--offload=optimizer", "--json"})
                     .out;
  const auto front = out.find("\"pareto\":[");
  REQUIRE(front != std::string::npos);
  uint32_t too_large = 0;
  for (auto at = out.find("\"simulated_fits\":false"); at < front; at = out.find("\"simulated_fits\":false", at + 1)) {
    const auto begin = out.rfind("{\"tensor\"", at);
    const auto plan = out.substr(begin, out.find("\"rates_by\"", begin) - begin);
    CHECK_MESSAGE(out.find(plan, front) == std::string::npos, plan);
    ++too_large;
  }
  CHECK(too_large > 0);
  CHECK(out.find("\"simulated_fits\":true") < front);
}

TEST_CASE("plan: a number that does not divide is named with what it does not divide") {
  auto ask = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"--model=llama3-8b", "--system=h100-80g", "--gpus=64", "--global-batch=128"});
    return answer_to(more);
  };
  const auto seven = ask({"--tensor=7"});
  CHECK(seven.code == 1);
  CHECK(seven.out.find("- --tensor 7: 7 does not divide the 32 attention heads\n") != std::string::npos);
  CHECK(ask({"--tensor=7", "--json"}).out.find("\"not_dividing\":[\"--tensor 7: 7 does not divide the 32 attention")
        != std::string::npos);
  CHECK(ask({"--pipeline=3"}).out.find("- --pipeline 3: 3 does not divide the 64 GPUs\n") != std::string::npos);
}

TEST_CASE("plan: a refusal has a reason when no option was given, and when the framework lacks a schedule") {
  const auto odd = answer_to({"--model=llama3-70b", "--system=h100-80g", "--gpus=63", "--global-batch=512"});
  CHECK(odd.code == 1);
  CHECK(
    odd.out.find("No plan divides the model and the batch among 63 GPUs.\n- 63 GPUs are TP x CP x DP x PP, and 63 = "
                 "3 x 3 x 7.")
    != std::string::npos);
  CHECK(odd.out.find("Numbers of GPUs that do: 56, 64, 68, 72. ") != std::string::npos);
  const auto lacking = answer_to({"--model=llama3-70b", "--system=h100-80g", "--gpus=64", "--global-batch=512",
                                  "--schedule=zb-v", "--framework=megatron"});
  CHECK(lacking.code == 1);
  CHECK(lacking.out.find("- --schedule zb-v: Megatron Core has no zb-v; its schedules are 1f1b, interleaved\n")
        != std::string::npos);
}

TEST_CASE("plan: the error band says what it comes from, and the first plan is no tie with itself") {
  auto page = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"--gpus=16", "--global-batch=64"});
    return answer_to(more).out;
  };
  auto says = [](const std::string& text, const std::string& part) { return contains(in_one_line(text), part); };
  const auto a100 = page({"--model=llama3-8b", "--system=a100-80g"}),
             amd = page({"--model=llama3-8b", "--system=mi300x"}),
             old = page({"--model=mixtral-8x7b", "--system=h100-80g", "--software=megatron-2024"});
  CHECK(says(a100, "Differences of less than 33 % mean nothing: beside published trainings estimates are 8 to 31 % too "
                   "fast."));
  CHECK(says(amd, "Differences of less than 20 % mean nothing: that error is assumed, since no training on mi300x by "
                  "megatron-2026 was compared."));
  CHECK(says(old,
             "Differences of less than 20 % mean nothing: that error is assumed, since no training of a model with "
             "experts by megatron-2024 was compared."));
  CHECK(says(amd, "9 other plans are ties with the first."));
  CHECK(says(amd, " first megatron"));
  const auto json = page({"--model=llama3-8b", "--system=mi300x", "--json"});
  CHECK(says(json, "\"estimate_error_is\":\"assumed\",\"estimate_error_assumed_because\":\"no training on mi300x by "
                   "megatron-2026 was compared\""));
  const auto deepseek = answer_to({"--model=deepseek-v3", "--system=h800-80g", "--software=deepseek-2024",
                                   "--precision=fp8", "--gpus=2048", "--global-batch=15360", "--expert=64", "--json"})
                          .out;
  CHECK(says(deepseek,
             "what software reaches on h800-80g is taken as on h100-80g; trainings there were compared with"));
  CHECK(says(deepseek, "\"estimate_error_is\":\"measured\""));
}

TEST_CASE("plan: all keys of JSON are in snake_case") {
  const auto json = answer_to({"--model=mixtral-8x7b", "--system=b200", "--gpus=16", "--global-batch=32",
                               "--offload=optimizer", "--tokens=1T", "--price=2", "--gpu-mttf=50000h", "--plays=1",
                               "--shrink", "--json"})
                      .out;
  const std::string quote_and_colon = "\":";
  size_t keys = 0;
  for (auto end = json.find(quote_and_colon); end != json.npos; end = json.find(quote_and_colon, end + 1)) {
    const auto begin = json.rfind('"', end - 1) + 1;
    const auto key = json.substr(begin, end - begin);
    CHECK_MESSAGE(key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == key.npos, key);
    ++keys;
  }
  CHECK(keys > 100);
  CHECK(json.find("\"offloading\":") != json.npos);
}

TEST_CASE("plan: MFU says what it counts of attention, on the page and in JSON, and counts what is asked for") {
  auto ask = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"--model=llama3-8b", "--system=h100-80g", "--gpus=8", "--global-batch=32",
                               "--schedule=fsdp", "--tensor=1", "--sequence=8192"});
    return in_one_line(answer_to(more).out);
  };
  auto number = [](const std::string& text, const std::string& before) {
    const auto at = text.find(before);
    REQUIRE(at != text.npos);
    return std::stod(text.substr(at + before.size()));
  };
  CHECK(ask({}).find("of bf16's peak, counting causal attention") != std::string::npos);
  CHECK(ask({"--mfu=full"}).find("of bf16's peak, counting full attention") != std::string::npos);
  CHECK(ask({"--attention=unfused"}).find("counting full attention") != std::string::npos);
  CHECK(ask({"--attention=unfused", "--mfu=causal"}).find("counting causal attention") != std::string::npos);
  const auto causal = ask({"--json"}), full = ask({"--json", "--mfu=full"});
  CHECK(causal.find("\"mfu_counts\":\"causal\"") != std::string::npos);
  CHECK(full.find("\"mfu_counts\":\"full\"") != std::string::npos);
  // Operations of a token: 6 for each weight of the layers and the output, 12 s h a layer for all scores.
  const double weights = 32. * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336) + 4096. * 128256,
               scores = 12. * 8192 * 4096 * 32, ratio = (6 * weights + scores) / (6 * weights + scores / 2);
  CHECK(ratio == doctest::Approx(1.125168).epsilon(1e-6));
  for (auto* member : {"\"mfu_percent\":", "\"tflops_per_gpu\":"})
    CHECK(number(full, member) / number(causal, member) == doctest::Approx(ratio).epsilon(1e-5));
  CHECK(number(full, "\"time_s\":") == number(causal, "\"time_s\":"));
}

TEST_CASE("plan: sequences beyond a table of positions are noted, and change neither it nor the parameters") {
  for (auto* sequence : {"256", "1024", "8192"}) {
    const auto json = answer_to({"--model=gpt2-117m", "--gpus=8", "--global-batch=64", "--json", "--sequence",
                                 sequence});
    CHECK(json.out.find("\"parameters\":124439808,") != std::string::npos);
    CHECK(json.out.find("\"positions\":1024,") != std::string::npos);
  }
  const std::string note = "beyond the 1024 positions that gpt2-117m, changed was made for: its embedding of positions "
                           "has no more rows";
  CHECK(contains(in_one_line(answer_to({"--model=gpt2-117m", "--gpus=8", "--global-batch=64", "--sequence=8192"}).out),
                 note));
  CHECK(answer_to({"--model=gpt2-117m", "--gpus=8", "--global-batch=64"}).out.find("beyond the") == std::string::npos);
}

TEST_CASE("plan: what is fitted to on A100 is said of A100, not of later systems") {
  auto ask = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"--model=llama3-8b", "--system=a100-80g", "--global-batch=1024"});
    return answer_to(more).out;
  };
  const auto unfused = ask({"--gpus=64", "--attention=unfused", "--schedule=1f1b"});
  CHECK(unfused.find("speed of --software megatron-2022: Megatron-LM on A100, as published from 2022 to 2024\n")
        != std::string::npos);
  CHECK(unfused.find("was fitted to") == std::string::npos); // dense models in bf16 are what it is fitted to
  CHECK(ask({"--gpus=8", "--schedule=fsdp"}).find("no training that shares weights fully was fitted to on A100")
        != std::string::npos);
  CHECK(ask({"--gpus=1024", "--schedule=1f1b"}).find("no training on more than 512 A100 was fitted to")
        != std::string::npos);
}
