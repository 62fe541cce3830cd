
#include "runtime/text/json_field.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"
#include "tests/tools/console/set_columns.hpp"
#include "tools/options/commands.hpp"
#include "training/search/strategy_search.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

outcome plan(const std::vector<std::string>& args) {
  return run_command(plan_command(), args);
}

outcome simulated(const std::vector<std::string>& args) {
  return run_command(simulate_command(), args);
}

std::string plan_refusal(const std::vector<std::string>& args) {
  auto result = plan(args);
  CHECK(result.code == 2);
  CHECK(result.out.empty());
  return result.err;
}

} // namespace

TEST_CASE("plan: the ten best, why the others lose, the simulated best and the front") {
  std::vector<std::string> args{"--model", "gpt3-13b", "--gpus=32", "--global-batch=128"};
  auto text = plan({"--model", "gpt3-13b", "--gpus=32", "--global-batch=128", "--wide"});
  CHECK(text.code == 0);
  for (auto* part :
       {"gpt3-13b (12.9 billion parameters) on 32 x a100-80g", "vs first\n", "The Pareto front of time and memory"})
    CHECK(text.out.find(part) != std::string::npos);
  args.push_back("--json");
  auto object = plan(args);
  auto json = parse_json(object.out);
  REQUIRE(json.engaged());
  CHECK(json->at("best").size() == 10);
  for (auto& x : json->at("best"))
    if (auto& full = x.at("simulated_time_s"); full.is_number())
      CHECK(std::abs(full.get<double>() / x.at("time_s").get<double>() - 1) < 0.08);
  for (auto& x : json->at("best")) { // a100-80g's room
    auto& fits = x.at("simulated_fits");
    CHECK(fits.get<bool>() == (x.at("simulated_memory_bytes").get<double>() <= 76e9));
  }
  CHECK(plan(args).out == object.out);
}

TEST_CASE("plan: what looks slower in closed form and is faster simulated stands first, with its rates") {
  auto first_of = [](std::vector<std::string> more) { // of the same question, under a filter or not
    std::vector<std::string> args{"--model", "qwen3-30b-a3b", "--system",           "b200",  "--precision",
                                  "fp8",     "--gpus=128",    "--global-batch=512", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    const auto found = plan(args);
    auto json = parse_json(found.out);
    REQUIRE_MESSAGE(json.engaged(), found.err);
    const auto& first = json->at("best").at(0);
    const auto seconds = first.at("simulated_time_s").get<double>();
    CHECK(first.at("tokens_per_s").get<double>() == doctest::Approx(512 * 4096 / seconds).epsilon(1e-6));
    return seconds;
  };
  CHECK(first_of({}) <= first_of({"--exclude", "fsdp,hsdp"}));
}

TEST_CASE("plan: ZeRO's shards of experts are shared by those that have the same ones alone, simulated, too") {
  for (const std::string sharding : {"zero2", "zero3"})
    for (const std::string experts : {"4", "8"}) {
      CAPTURE(sharding);
      CAPTURE(experts);
      auto json = parse_json(plan({"--model=mixtral-8x7b", "--system=mi300x", "--gpus=8", "--global-batch=16",
                                   "--tensor=1", "--context=1", "--pipeline=1", "--micro-batch=1", "--recompute=full",
                                   "--json", "--schedule=" + sharding, "--expert=" + experts})
                               .out);
      REQUIRE(json.engaged());
      auto& best = json->at("best").at(0);
      CHECK(best.at("simulated_memory_bytes").get<double>()
            == doctest::Approx(best.at("memory_bytes").get<double>()).epsilon(0.03));
    }
}

TEST_CASE("plan: positions that experts drop are no work, and no MFU") {
  auto mfu_of = [](const std::vector<std::string>& more) {
    std::vector<std::string> args{"--model",    "mixtral-8x7b",        "--system", "b200",
                                  "--gpus=256", "--global-batch=2048", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    const auto found = plan(args);
    auto json = parse_json(found.out);
    REQUIRE_MESSAGE(json.engaged(), found.err);
    return json->at("best").at(0).at("mfu_percent").get<double>();
  };
  CHECK(mfu_of({"--capacity", "0.1"}) < mfu_of({}));
}

TEST_CASE("plan: a run takes as long as it does with the spares that there are") {
  std::vector<std::string> args{"--model",   "llama3-8b",         "--system",    "h100-80g",
                                "--gpus=64", "--global-batch=64", "--tokens=1T", "--gpu-mttf=50000h"};
  auto page = [&] { return in_one_line(plan(args).out); };
  CHECK(contains(page(), "with the failures below (restart, no spare: go on smaller: "));
  args.push_back("--spares=2");
  CHECK(contains(page(), "with the failures below (restart, 2 spares: "));
  CHECK(contains(page(), " GPU-hours with 16 GPUs that stand by, "));
  auto hours = [&](const char* spares) {
    args.back() = spares;
    args.push_back("--json");
    const auto text = plan(args).out;
    args.pop_back();
    const std::string days = "\"days\":", all = "\"gpu_hours\":";
    return std::stod(text.substr(text.find(all) + all.size()))
           / (24 * std::stod(text.substr(text.find(days) + days.size())));
  };
  CHECK(hours("--spares=0") == doctest::Approx(64));
  CHECK(hours("--spares=2") == doctest::Approx(80)); // who stands by is rented, too
}

TEST_CASE("plan: under the lab's costs every strategy is searched, and plain data parallel stands beside the best") {
  auto result = plan({"--cost-model=lab", "--ranks=8", "--layers=16", "--global-batch=256", "--json"});
  CHECK(result.code == 0);
  auto json = parse_json(result.out);
  REQUIRE(json.engaged());
  auto& best = json->at("best");
  REQUIRE(best.size() == 10);
  CHECK(best[0].at("time_s").get<double>() <= json->at("plain").at("time_s").get<double>());
  for (size_t i = 1; i < best.size(); ++i)
    CHECK(best[i - 1].at("time_s").get<double>() <= best[i].at("time_s").get<double>());
}

TEST_CASE("plan: under the lab's costs a strategy's sides are those that it has, and its columns say their units") {
  const std::vector<std::string> args{"--cost-model=lab", "--ranks=8", "--layers=16", "--global-batch=256"};
  const auto text = plan(args).out;
  CHECK(contains(text, " TP DP PP micro VPP time, ms MFU, % bubble, % comm., % peak, G elements\n"));
  CHECK(contains(in_one_line(text), " ddp-overlap 1 8 1 "));
  auto with_json = args;
  with_json.push_back("--json");
  auto json = parse_json(plan(with_json).out);
  REQUIRE(json.engaged());
  for (auto* list : {"best", "pareto"})
    for (auto& x : json->at(list))
      CHECK(x.at("tensor").get<double>() * x.at("data").get<double>() * x.at("stages").get<double>() == 8);
  CHECK(json->at("plain").at("data").get<double>() == 8);
}

TEST_CASE("plan: a bound of the search is never above what is simulated, and hides nothing") {
  struct world {
    uint32_t layers;
    uint64_t batch;
    uint32_t ranks;
  };
  auto same = [](const std::vector<training::searched>& a, const std::vector<training::searched>& b, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      CHECK(a[i].time == b[i].time);
      CHECK(a[i].peak_memory == b[i].peak_memory);
    }
  };
  for (auto* costs : {&training::lab_costs(), &training::puzzle_costs()})
    for (auto [layers, batch, ranks] :
         {world{8, 32, 4}, {8, 84, 4}, {5, 12, 1}, {1, 2, 1}, {17, 8, 4}, {64, 2, 2}, {64, 6, 6}, {64, 8, 8}}) {
      CAPTURE(layers);
      CAPTURE(ranks);
      auto search = [&](uint64_t memory, size_t count) {
        return training::search_strategies(layers, batch, ranks, *costs, memory, count);
      };
      auto all = search(UINT64_MAX, 100'000),
           found = search(UINT64_MAX, 10); // as many best as candidates: all simulated
      CHECK(all.simulated == all.candidates);
      for (auto& x : all.best) {
        CHECK(x.bound.time <= x.time * (1 + 1e-9));
        CHECK(x.bound.memory <= x.peak_memory);
      }
      CHECK(found.open == 0);
      REQUIRE(found.pareto.size() == all.pareto.size());
      same(found.pareto, all.pareto, all.pareto.size());
      same(found.best, all.best, found.best.size());
      for (auto& x : all.pareto) // where no more is allowed than it takes, it is the best
        same(search(x.peak_memory, 1).best, {x}, 1);
    }
}

TEST_CASE("plan: the best one's step as a picture and a trace, whatever its axes are") {
  temporary_directory dir;
  const auto picture = (dir.path() / "step.svg").string(), trace = (dir.path() / "step.json").string();
  for (auto& axes : std::vector<std::vector<std::string>>{{"--schedule=fsdp", "--tensor=2", "--context=2"},
                                                          {"--schedule=1f1b", "--pipeline=4", "--tensor=2"}}) {
    std::vector<std::string> args{"--model=llama3-8b", "--system=h100-80g", "--gpus=16", "--global-batch=64"};
    args.insert(args.end(), axes.begin(), axes.end());
    const auto alone = plan(args);
    args.insert(args.end(), {"--timeline", picture, "--trace", trace});
    const auto shown = plan(args);
    CHECK(shown.code == 0);
    CHECK(shown.out == alone.out);
    const auto svg = content_of(picture), json = content_of(trace);
    CHECK(contains(svg, "llama3-8b on 16 x h100-80g: TP2 "));
    CHECK(contains(svg, "stage 0"));
    CHECK(contains(svg, "stage 3") == contains(axes[0], "1f1b"));
    CHECK(contains(json, R"("name":"stage 0")"));
    CHECK(parse_json(json).engaged());
  }
  const auto large = plan({"--model=llama3.1-405b", "--system=h100-80g", "--gpus=1024", "--global-batch=512",
                           "--schedule=1f1b", "--timeline", picture, "--trace", trace, "--trace-limit=1M"});
  CHECK(large.code == 1); // the trace is too large, and the picture is there
  CHECK(contains(large.err, ", over the limit of 1 MiB: "));
  CHECK(contains(large.err, "(--trace-limit)"));
  CHECK(contains(content_of(picture), "llama3.1-405b on 1024 x h100-80g"));
  CHECK(plan_refusal({"--cost-model=lab", "--ranks=8", "--layers=8", "--global-batch=8", "--trace=x"})
        == "ringmaster plan: --trace is of a transformer, not of --cost-model lab\n");
  CHECK(contains(plan_refusal({"--gpus=8", "--global-batch=8", "--trace-limit=1M"}), "there is none"));
  CHECK(contains(plan_refusal({"--gpus=8", "--global-batch=8", "--trace=x", "--trace-limit=0"}),
                 "--trace-limit: \"0\" is not at least 64 KiB"));
  const std::vector<std::string> off_loaded{"--model=llama3-8b",     "--system=h100-80g",     "--gpus=8",
                                            "--global-batch=8",      "--offload=activations", "--schedule=1f1b",
                                            "--timeline=" + picture, "--sequence=8192"};
  const auto refused = plan(off_loaded);
  CHECK(contains(refused.err, "--timeline: the best plan, "));
  CHECK(contains(refused.err, "cannot be shown: activations that are off-loaded are not simulated"));
}

TEST_CASE("plan: the page says whose speed it is, and what is known to be slower") {
  auto page = [](std::vector<std::string> args) {
    args.insert(args.end(), {"--gpus=64", "--global-batch=64"});
    return in_one_line(plan(args).out);
  };
  const auto dense = page({"--model=llama3-8b", "--system=h100-80g", "--schedule=fsdp"});
  CHECK(contains(dense, "speed of --software megatron-2026: Megatron Core"));
  CHECK_FALSE(contains(dense, "with experts"));
  CHECK_FALSE(contains(dense, "Megatron Core has no"));
  CHECK_FALSE(contains(dense, "1,024 GPUs"));
  CHECK(contains(page({"--model=qwen3-30b-a3b", "--system=h100-80g"}), "with experts that is its best: published"));
  CHECK(contains(page({"--model=llama3-8b", "--system=h100-80g", "--schedule=zb-v"}), "Megatron Core has no zb-v: "));
  CHECK(contains(page({"--model=llama3-8b", "--system=a100-80g"}), "8 to 31 % too fast beside published"));
  CHECK(
    contains(in_one_line(plan({"--model=llama3-70b", "--system=h100-80g", "--gpus=2048", "--global-batch=2048"}).out),
             "no training on more than 1,024 GPUs was fitted to"));
}

TEST_CASE("plan: no line of text is longer than 100 columns, or than $COLUMNS, but for tables with --wide") {
  const std::vector<std::vector<std::string>> questions{
    {"--model=llama3-70b", "--system=h100-80g", "--gpus=64", "--global-batch=512", "--tokens=15T", "--price=2.50"},
    {"--model=deepseek-v3", "--system=gb200-nvl72", "--precision=mxfp8", "--gpus=256", "--global-batch=4096",
     "--expert=64", "--tensor=1", "--gpu-mttf=50000h", "--plays=1", "--shrink"},
    {"--model=mixtral-8x7b", "--system=mi300x", "--gpus=8", "--global-batch=16", "--offload=optimizer,activations"},
    {"--model=llama3-8b", "--system=a100-80g", "--gpus=16", "--global-batch=64", "--framework=torchtitan"},
    {"--model=llama3.1-405b", "--system=h100-80g", "--gpus=8", "--global-batch=8"},
    {"--model=llama3-70b", "--gpus=63", "--global-batch=512"},
    {"--cost-model=lab", "--ranks=8", "--layers=16", "--global-batch=256"},
    {"--cost-model=puzzles", "--ranks=4", "--layers=8", "--global-batch=8"}};
  for (auto& args : questions) {
    const set_columns set{"250"};
    CAPTURE(args[0]);
    CHECK(longest_line(plan(args).out) <= 100);
  }
  const set_columns set{"60"};
  auto wide = questions[0];
  wide.push_back("--wide");
  const auto all = plan(wide).out, some = plan(questions[0]).out;
  CHECK(longest_line(all) > 100);
  CHECK(longest_line(some) <= 60);
  CHECK(longest_line(plan(questions[1]).out) <= 60);
  CHECK(contains(some, "Not shown: "));
  CHECK(!contains(all, "Not shown: "));
  for (auto* head : {"MFU %", "closed s", "closed GB", "vs first", "recompute", "MBS", "VPP", "SP"})
    CHECK_MESSAGE(contains(all, head), head);
  wide.push_back("--json");
  CHECK(contains(plan_refusal(wide), "--wide is of tables in text: leave out --json"));
}

TEST_CASE("plan: parallel degrees have their usual names, and why a plan was not simulated is a footnote") {
  const auto text
    = plan({"--model=mixtral-8x7b", "--system=mi300x", "--gpus=8", "--global-batch=16", "--offload=activations"}).out;
  CHECK(contains(text, " # TP CP DP EP PP VPP MBS schedule "));
  CHECK(occurrences(text, "not simulated: ") == 1);
  CHECK(contains(in_one_line(text), " a: not simulated: activations that are off-loaded are not simulated "));
}

TEST_CASE("plan: bad input gets a sentence") {
  CHECK(plan_refusal({"--global-batch=8"})
        == "ringmaster plan: --gpus is missing: say how many, such as --gpus 1024\n");
  CHECK(plan_refusal({"--gpus=8"}).find("--global-batch is missing") != std::string::npos);
  CHECK(plan_refusal({"--gpus=0", "--global-batch=8"}).find("\"0\" is not an integer from 1") != std::string::npos);
  CHECK(plan_refusal({"--model=gpt5", "--gpus=8", "--global-batch=8"})
          .find("there is no model \"gpt5\"; there are: gpt2-117m")
        != std::string::npos);
  CHECK(plan_refusal({"--system=a200", "--gpus=8", "--global-batch=8"}).find("there is no system and no file \"a200\"")
        != std::string::npos);
  CHECK(plan_refusal({"--cost-model=lab", "--ranks=8", "--global-batch=8"}).find("--layers is missing")
        != std::string::npos);
  CHECK(plan_refusal({"--cost-model=lab", "--ranks=8", "--layers=8", "--global-batch=8", "--system=a100-80g"})
        == "ringmaster plan: --system is of a transformer, not of --cost-model lab\n");
  temporary_directory dir;
  const auto none = (dir.path() / "none.svg").string();
  auto large = plan({"--model=megatron-1t", "--gpus=8", "--global-batch=64", "--svg", none});
  CHECK(large.code == 1);
  CHECK(contains(large.err, "--svg is not written: no plan is to be shown"));
  CHECK(!std::filesystem::exists(none));
  CHECK(large.out.find("None fits.") != std::string::npos);
}

TEST_CASE("plan: filters leave out what they name, and a search of nothing says what there is") {
  const std::vector<std::string> question{"--model=llama3-8b", "--system=h100-80g", "--gpus=16", "--global-batch=64"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), question.begin(), question.end());
    return more;
  };
  auto result = plan(
    with({"--tensor=2..4", "--schedule=1f1b,zero1,fsdp", "--exclude=fsdp", "--micro-batch=1,2", "--json"}));
  REQUIRE(result.code == 0);
  auto json = parse_json(result.out);
  REQUIRE(json.engaged());
  for (auto& x : json->at("best")) {
    CHECK(x.at("tensor").get<double>() >= 2);
    CHECK(x.at("tensor").get<double>() <= 4);
    CHECK(x.at("micro_batch").get<double>() <= 2);
    CHECK(x.at("schedule").get<std::string>() == (x.at("pipeline").get<double>() > 1 ? "1f1b" : "none"));
    CHECK(x.at("sharding").get<std::string>() == "zero1");
  }
  auto memory_with = [&](const std::string& option) {
    auto found = parse_json(
      plan(with({"--schedule=1f1b,zero1", "--tensor=2", "--pipeline=1", "--context=1", "--json", option})).out);
    REQUIRE(found.engaged());
    return found->at("pareto").at(0).at("memory_bytes").get<double>();
  };
  CHECK(memory_with("--gradients=bf16") < memory_with("--gradients=fp32"));
  CHECK(memory_with("--optimizer-states=bf16") < memory_with("--optimizer-states=fp32"));
  CHECK(plan_refusal(with({"--tensor=8..4"})).find("\"8..4\" is an empty range") != std::string::npos);
  CHECK(plan_refusal(with({"--schedule=zb-v,gpip"})).find("did you mean gpipe?") != std::string::npos);
  CHECK(plan_refusal(with({"--micro-batch=1,x"})).find("no list of whole numbers") != std::string::npos);
  CHECK(plan_refusal(with({"--price=2"})).find("say how long it is") != std::string::npos);
  CHECK(plan_refusal(with({"--json", "--csv"})).find("say one") != std::string::npos);
  CHECK(plan_refusal(with({"--gpu-mttf=50000h", "--csv"})).find("--gpu-mttf is of the whole run") != std::string::npos);
  CHECK(plan_refusal(with({"--expert=2..4"}))
        == "ringmaster plan: --expert 2..4 is of models with experts, such as deepseek-v3; llama3-8b has none\n");
  CHECK(plan(with({"--expert=1..4", "--schedule=1f1b,zero1", "--tensor=2"})).code == 0);
  CHECK(plan_refusal(with({"--schedule=zb-v,zero1", "--exclude=zb-v"}))
        == "ringmaster plan: --exclude zb-v leaves nothing of --schedule zb-v,zero1\n");
  CHECK(plan_refusal(with({"--schedule=fsdp", "--exclude=fsdp,hsdp"}))
        == "ringmaster plan: --exclude fsdp,hsdp leaves nothing of --schedule fsdp\n");
  CHECK(plan_refusal(with({"--exclude=zero0,zero1,zero2,zero3,fsdp,hsdp"}))
        == "ringmaster plan: --exclude zero0,zero1,zero2,zero3,fsdp,hsdp leaves nothing\n");
  CHECK(plan_refusal({"--model=llama3-8b", "--system=a100-80g", "--precision=fp8", "--gpus=8", "--global-batch=8"})
          .find("a100-80g has no fp8")
        != std::string::npos);
}

TEST_CASE("plan: a model from a file is planned as the known one") {
  test::temporary_directory dir;
  const auto file = (dir.path() / "config.json").string();
  std::ofstream{file} << R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
    "max_position_embeddings": 32768, "num_attention_heads": 32, "num_experts_per_tok": 2, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "num_local_experts": 8, "sliding_window": null, "vocab_size": 32000})";
  const std::vector<std::string> question{"--system=h100-80g", "--gpus=16",  "--global-batch=32",
                                          "--sequence=4096",   "--expert=8", "--json"};
  auto of = [&](const std::string& model, std::vector<std::string> more = {}) {
    more.insert(more.begin(), question.begin(), question.end());
    more.insert(more.begin(), {"--model", model});
    return more;
  };
  auto from_file = plan(of(file)), by_name = plan(of("mixtral-8x7b"));
  REQUIRE_MESSAGE(from_file.code == 0, from_file.err);
  auto text = from_file.out;
  const auto at = text.find(file);
  REQUIRE(at != text.npos);
  CHECK(text.replace(at, file.size(), "mixtral-8x7b") == by_name.out);

  auto first_seconds = [](const outcome& x) {
    auto json = parse_json(x.out);
    REQUIRE(json.engaged());
    return json->at("best").at(0).at("time_s").get<double>();
  };
  const auto even = first_seconds(by_name), uneven = first_seconds(plan(of(file, {"--imbalance=2"}))),
             dropped = first_seconds(plan(of(file, {"--imbalance=2", "--capacity=1.25"}))),
             further = first_seconds(plan(of(file, {"--multi-token=1"})));
  CHECK(uneven > dropped);
  CHECK(dropped > even);
  CHECK(further > even);
  CHECK(plan_refusal(of(file, {"--imbalance=9"})).find("the fullest of 8 experts has 1 to 8 times the mean")
        != std::string::npos);
  CHECK(plan_refusal(of(file, {"--imbalance=0.5"})).find("an imbalance of 0.5 cannot be") != std::string::npos);
  CHECK(plan_refusal(of(file, {"--imbalance=much"})).find("\"much\" is no factor above 0, such as 1.25")
        != std::string::npos);
  CHECK(plan_refusal(of(file, {"--capacity=1.25"})).find("a --capacity of 1.25 drops nothing") != std::string::npos);
  for (auto* option : {"--imbalance=2", "--capacity=2", "--multi-token=1"}) {
    const std::string name{option, std::string_view{option}.find('=')};
    CHECK(plan_refusal(of("llama3-8b", {option})).find(name + " is of models with experts") != std::string::npos);
  }
  CHECK(plan_refusal({"--cost-model=lab", "--ranks=8", "--layers=8", "--global-batch=8", "--multi-token=1"})
          .find("--multi-token is of a transformer")
        != std::string::npos);
  std::ofstream{file} << R"({"model_type": "mamba9"})";
  auto wrong = plan(of(file));
  CHECK(wrong.code != 0);
  CHECK(wrong.err.find("config.json: model, \"model_type\": \"mamba9\" is not a known family of models; ")
        != std::string::npos);
}

TEST_CASE("simulate validate: prints what was calibrated on apart from what was held out") {
  const std::string data = std::string{RINGMASTER_SOURCE_DIR} + "/bench/data/a100_iterations";
  auto result = simulated({"validate", "--data", data});
  CHECK(result.code == 0);
  for (auto* part : {"single.csv, calibrated on    72", "single.csv, held out         72", "multi.csv, held out",
                     "megatron-22b                 full ", "mean of the deviations"})
    CHECK(result.out.find(part) != std::string::npos);
  auto trainings = simulated({"validate", "--data",
                              std::string{RINGMASTER_SOURCE_DIR} + "/bench/data/gpu_pretraining"});
  for (auto* part : {"dense, held out", "with experts, held out", "left out: \"DeepSeekV4 Flash\""})
    CHECK(trainings.out.find(part) != std::string::npos);
  const auto root = std::string{RINGMASTER_SOURCE_DIR} + "/bench/data";
  const auto all = simulated({"validate", "--data", root});
  CHECK(all.code == 0);
  for (auto* part :
       {"/a100_iterations\n", "single.csv, held out", "/gpu_pretraining/pretraining.csv\n", "with experts, held out",
        "/gpu_pretraining_further/pretraining.csv\n", "/pretraining_by_software/pretraining.csv\n"})
    CHECK_MESSAGE(contains(all.out, part), all.out);
  CHECK(contains(all.out, "measured: " + root));
  temporary_directory empty;
  const auto nothing = simulated({"validate", "--data", empty.path().string()});
  CHECK(nothing.code == 1);
  for (auto* part : {"has none of what is read: ", "single.csv and multi.csv", "pretraining.csv", "a100_iterations"})
    CHECK_MESSAGE(contains(nothing.err, part), nothing.err);
  CHECK(simulated({"validate", "--data=nowhere"}).code == 1);
  CHECK(simulated({"validate", "--system=nowhere"}).code == 2);
}

TEST_CASE("simulate validate: rows that were calibrated on are known by the data, not by the place of the file") {
  temporary_directory elsewhere;
  const auto file = elsewhere.path() / "rows.csv";
  const auto shown = [&](const std::string& content) {
    write_content(file, content);
    const auto result = simulated({"validate", "--data", file.string()});
    CHECK_MESSAGE(result.code == 0, result.err);
    return result.out;
  };
  auto data = content_of(std::string{RINGMASTER_SOURCE_DIR} + "/bench/data/gpu_pretraining/pretraining.csv");
  const auto same = shown(data);
  for (auto* part : {"dense, calibrated on", "dense, held out", "with experts, held out"})
    CHECK_MESSAGE(contains(same, part), same);
  const auto throughput = data.rfind("5275.0");
  REQUIRE(throughput != data.npos);
  const auto other = shown(data.replace(throughput, 4, "5276"));
  for (auto* part : {"calibrated on", "held out"})
    CHECK_MESSAGE(!contains(other, part), other);
}

TEST_CASE("simulate memory: ZeRO's and the activations' formulas") {
  auto result = simulated({"memory", "--parameters=7.5e9", "--ranks=64"});
  CHECK(result.code == 0);
  for (auto* part : {"120.0", "31.4", "16.6", "1.9"})
    CHECK(result.out.find(part) != std::string::npos);
  CHECK(result.out.find("activations") == std::string::npos); // no model is named, whose they would be
  CHECK(simulated({"memory", "--parameters=7.5e9", "--tensor=2"}).out.find("60.0") != std::string::npos);
  CHECK(parse_json(simulated({"memory", "--model=megatron-22b", "--ranks=8", "--tensor=8", "--json"}).out).engaged());
  CHECK(simulated({"memory", "--parameters=many"}).code == 2);
  CHECK(simulated({"memory", "--model=megatron-22b"}).out.find("TP 1, scores in memory\n") != std::string::npos);
  CHECK(simulated({"memory", "--model=llama3-8b"}).out.find("TP 1, scores in tiles\n") != std::string::npos);
  const auto uneven = simulated({"memory", "--model=llama3-8b", "--tensor=5"});
  CHECK(uneven.code == 2);
  CHECK(uneven.err.find("does not divide the 32 attention heads of llama3-8b") != std::string::npos);
}
