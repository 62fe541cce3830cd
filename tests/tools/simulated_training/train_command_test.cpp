#include "tests/support/file_content.hpp"
#include "tools/options/commands.hpp"

#include "planner/estimates/iteration_estimate.hpp"
#include "planner/models/known_models.hpp"
#include "runtime/text/json_field.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"
#include "training/strategies/strategies.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

outcome train(std::vector<std::string> args) {
  args.insert(args.begin(), "train");
  return run_command(simulate_command(), args);
}

std::string train_refusal(const std::vector<std::string>& args) {
  auto result = train(args);
  CHECK(result.code == 2);
  return result.err;
}

/// Of the first member of that name.
double number_in(const std::string& json, const std::string& name) {
  const auto text = "\"" + name + "\":";
  REQUIRE_MESSAGE(json.find(text) != std::string::npos, json);
  return std::stod(json.substr(json.find(text) + text.size()));
}

} // namespace

TEST_CASE("simulate train: the text and the object have the same step") {
  std::vector<std::string> args{"--strategy=1f1b", "--ranks=2", "--layers=2", "--global-batch=8", "--micro-batch=2"};
  auto text = train(args);
  CHECK(text.code == 0);
  CHECK(text.out.find("time           1.385 ms to the start of the last event") != std::string::npos);
  args.push_back("--json");
  auto json = train(args);
  CHECK(json.code == 0);
  CHECK(json.out.find(R"("time_s":0.00138526421824425)") != std::string::npos);
  CHECK(json.out.find(R"("peak_memory_unit":"elements")") != std::string::npos);
  CHECK(occurrences(json.out, R"({"rank":)") == 2);
  CHECK(train(args).out == json.out); // the same input, the same bytes
}

TEST_CASE("simulate train: the text names each axis that ranks lie along") {
  auto says = [](const std::vector<std::string>& args, const std::string& line) {
    CHECK(train(args).out.find("\n" + line + "\n") != std::string::npos);
  };
  says({"--strategy=3d", "--ranks=16", "--context=2", "--experts=4", "--layers=8", "--global-batch=32"},
       "2 tensor x 2 context x 2 data x 2 pipeline parallel ranks, 4 of a stage share experts");
  says({"--strategy=tensor", "--ranks=2", "--layers=2", "--global-batch=8", "--sequence-parallel"},
       "2 tensor x 1 data x 1 pipeline parallel ranks, sequence parallel");
}

TEST_CASE("simulate train: a plan takes as long, and as much memory, as `plan` says it does") {
  struct same {
    std::vector<std::string> simulated, planned;
  };
  const std::vector<std::string> both{"--model=llama3-8b", "--system=h100-80g", "--global-batch=64", "--micro-batch=1"};
  for (
    auto& x :
    {same{{"--strategy=1f1b", "--tensor=2", "--data=4", "--zero=1", "--sequence-parallel", "--ranks=16"},
          {"--tensor=2", "--data=4", "--pipeline=2", "--schedule=1f1b,zero1", "--gpus=16"}},
     same{{"--strategy=interleaved", "--tensor=2", "--data=4", "--zero=1", "--sequence-parallel", "--ranks=16",
           "--chunks=4"},
          {"--tensor=2", "--data=4", "--pipeline=2", "--schedule=interleaved,zero1", "--chunks=4", "--gpus=16"}},
     same{{"--strategy=interleaved", "--tensor=1", "--data=4", "--zero=1", "--ranks=8", "--chunks=17"}, // of 32 layers
          {"--tensor=1", "--data=4", "--pipeline=2", "--schedule=interleaved,zero1", "--chunks=17", "--gpus=8"}},
     same{{"--strategy=zero2", "--ranks=8"},
          {"--tensor=1", "--data=8", "--pipeline=1", "--schedule=1f1b,zero2", "--gpus=8"}},
     same{{"--strategy=fsdp", "--ranks=8"},
          {"--tensor=1", "--data=8", "--pipeline=1", "--schedule=fsdp", "--gpus=8"}}}) {
    auto simulated = x.simulated, planned = x.planned;
    CAPTURE(simulated.front());
    simulated.insert(simulated.end(), {"--cost-model=transformer", "--json"});
    simulated.insert(simulated.end(), both.begin(), both.end());
    planned.insert(planned.end(), {"--context=1", "--recompute=none", "--json"});
    planned.insert(planned.end(), both.begin(), both.end());
    const auto one = train(simulated).out, best = run_command(plan_command(), planned).out;
    CHECK(number_in(one, "end_s") == doctest::Approx(number_in(best, "simulated_time_s")).epsilon(0.01));
    CHECK(number_in(one, "peak_memory") == doctest::Approx(number_in(best, "simulated_memory_bytes")).epsilon(0.01));
  }
}

TEST_CASE("simulate train: naive tensor parallelism pays for the columns of experts, too") {
  auto communicated = [](const std::string& strategy, const std::string& model) {
    const auto json = train({"--cost-model=transformer", "--system=h100-80g", "--ranks=8", "--tensor=8",
                             "--global-batch=8", "--json", "--strategy=" + strategy, "--model=" + model})
                        .out;
    return number_in(json, "communication_fraction") * number_in(json, "end_s");
  };
  for (auto* model : {"llama3-8b", "mixtral-8x7b"}) { // 2.6 and more elements gathered for one that is summed
    CAPTURE(model);
    CHECK(communicated("tensor-naive", model) > 2 * communicated("tensor", model));
  }
}

TEST_CASE("simulate train: a trace has every event, and an arrow from each send to its receive") {
  temporary_directory dir;
  auto file = dir.path() / "trace.json";
  auto result = train({"--strategy=gpipe", "--ranks=2", "--layers=2", "--global-batch=4", "--cost-model=puzzles",
                       "--trace", file.string()});
  CHECK(result.code == 0);
  const auto trace = content_of(file);
  CHECK(parse_json(trace).engaged());
  CHECK(occurrences(trace, R"("name":"forward")") == 8);
  CHECK(occurrences(trace, R"("name":"update")") == 2);
  CHECK(occurrences(trace, R"("ph":"s")") == 8);
  for (int id = 1; id <= 8; ++id)
    CHECK(occurrences(trace, "\"id\":" + std::to_string(id) + ",") == 2);
}

TEST_CASE("simulate train: bad input gets a sentence") {
  CHECK(train_refusal({}) == "ringmaster simulate train: --strategy is missing: say which, such as --strategy 1f1b\n");
  CHECK(train_refusal({"--strategy=moon"}).find("there is no strategy \"moon\"; there are: ddp, ")
        != std::string::npos);
  CHECK(train_refusal({"--strategy=ddp", "--ranks=0"}).find("--ranks") != std::string::npos);
  CHECK(
    train_refusal({"--strategy=ddp", "--ranks=3"})
    == "ringmaster simulate train: a global batch of 32 does not divide among 3 data-parallel ranks; 30 or 33 would\n");
  CHECK(
    train_refusal({"--strategy=1f1b", "--ranks=8", "--layers=4"})
    == "ringmaster simulate train: 8 stages need a model of as many layers at least, not 4; more tensor-parallel or "
       "data-parallel ranks leave fewer stages\n");
  CHECK(train_refusal({"--strategy=ddp", "--cost-model=moon"})
          .find("there is no cost model \"moon\"; there are: lab, puzzles")
        != std::string::npos);
}

TEST_CASE("simulate train: all strategies side by side, and why one cannot") {
  std::vector<std::string> args{"--strategy=all", "--ranks=4", "--layers=8", "--global-batch=32", "--micro-batch=2"};
  auto table = train(args);
  CHECK(table.code == 0);
  // Two lines of heads, "Not shown", an empty line and "Not for --micro-batch".
  CHECK(occurrences(table.out, "\n") == 2 + training::strategies().size() + 3);
  CHECK(table.out.find("| strategy       | time, ms | peak memory, M elements | MFU, % | ") == 0);
  CHECK(contains(table.out, "\nNot shown: end, ms (--wide shows all)\n"));
  auto wide = args;
  wide.push_back("--wide");
  CHECK(train(wide).out.find("| strategy       | time, ms | end, ms | peak memory, M elements | MFU, % | ") == 0);
  CHECK(table.out.find("\n| 1f1b           |   10.1") != std::string::npos);
  CHECK(table.out.find("fits") == std::string::npos); // the lab's GPU has no limit
  args.push_back("--json");
  auto list = parse_json(train(args).out);
  REQUIRE(list.engaged());
  CHECK(list->size() == training::strategies().size());
  CHECK(train({"--strategy=all", "--ranks=3", "--layers=8", "--global-batch=32"})
          .out.find("does not divide among 3 data-parallel ranks")
        != std::string::npos);
  CHECK(train_refusal({"--strategy=all", "--trace=x"})
        == "ringmaster simulate train: --trace and --svg are of one strategy, not of all\n");
  CHECK(train_refusal({"--strategy=ddp", "--trace=x", "--svg=x"})
        == "ringmaster simulate train: --trace and --svg both name x: each needs a file of its own\n");
}

TEST_CASE("simulate train: a transformer takes its model's layers, and its options are its own") {
  auto result = train({"--strategy=tensor", "--ranks=8", "--cost-model=transformer", "--model=megatron-22b",
                       "--global-batch=4", "--micro-batch=4", "--recompute=full", "--json"});
  CHECK(result.code == 0);
  CHECK(result.out.find(R"("layers":48)") != std::string::npos);
  CHECK(result.out.find(R"("peak_memory_unit":"bytes")") != std::string::npos);
  for (std::string option : {"--model=gpt3-13b", "--precision=bf16", "--attention=unfused"})
    CHECK(train_refusal({"--strategy=ddp", option})
          == fmt::format("ringmaster simulate train: {} is of --cost-model transformer, not of lab\n",
                         option.substr(0, option.find('='))));
  CHECK(train_refusal({"--strategy=ddp", "--cost-model=transformer", "--model=x"}).find("there is no model \"x\"")
        != std::string::npos);
}

TEST_CASE("simulate train: an option that the strategy ignores is refused") {
  auto problem = [](std::vector<std::string> args) {
    args.insert(args.end(), {"--layers=16", "--global-batch=32"});
    return train_refusal(args);
  };
  CHECK(problem({"--strategy=ddp", "--tensor=2"})
        == "ringmaster simulate train: --tensor: ddp on 8 ranks has no tensor-parallel ones\n");
  CHECK(problem({"--strategy=zero1", "--data=2"})
        == "ringmaster simulate train: --data: zero1 on 8 ranks has 8 data-parallel ones\n");
  CHECK(problem({"--strategy=1f1b", "--zero=3"}).find("--zero: 1f1b on 8 ranks has no data-parallel ones")
        != std::string::npos);
  CHECK(problem({"--strategy=ddp", "--zero=1"}).find("--zero: ddp on 8 ranks has no stages") != std::string::npos);
  CHECK(problem({"--strategy=gpipe", "--sequence-parallel"}).find("no tensor-parallel ones that could share")
        != std::string::npos);
  CHECK(problem({"--strategy=tensor-naive", "--sequence-parallel"})
        == "ringmaster simulate train: --sequence-parallel: tensor-naive on 8 ranks gathers whole samples, and has "
           "columns of them before\n");
  CHECK(
    train({"--strategy=1f1b", "--data=2", "--tensor=2", "--zero=1", "--sequence-parallel", "--global-batch=16"}).code
    == 0);
  CHECK(train_refusal({"--strategy=ddp", "--ranks=65536", "--layers=65536", "--global-batch=65536"})
          .find("more than can be simulated")
        != std::string::npos);
  CHECK(train_refusal({"--strategy=ddp", "--cost-model=transformer", "--hidden=1000", "--heads=7"})
          .find("does not divide among 7 heads")
        != std::string::npos);
}

TEST_CASE("simulate train: what is gathered ahead, and who shares what, is gone by, or refused with who would") {
  const std::string refused = "ringmaster simulate train: ";
  CHECK(train_refusal({"--strategy=zero3", "--prefetch=2"})
        == refused + "--prefetch: zero3 on 8 ranks gathers nothing ahead: fsdp and hsdp do\n");
  CHECK(train_refusal({"--strategy=fsdp", "--shard=2"})
        == refused + "--shard: fsdp on 8 ranks has no groups that share the model: hsdp has\n");
  CHECK(train_refusal({"--strategy=hsdp", "--shard=3"})
        == refused + "8 ranks are no groups of 3: --shard must divide them\n");
  CHECK(train_refusal({"--strategy=ddp", "--context=2"})
        == refused
             + "--context: ddp on 8 ranks has none that share the positions of samples: context, context-gather and 3d "
               "have\n");
  CHECK(train_refusal({"--strategy=ddp", "--experts=2"})
        == refused + "--experts: ddp on 8 ranks has no layers of experts: dualpipe, expert and 3d have\n");
  CHECK(train_refusal({"--strategy=context", "--context=3"})
        == refused + "3 ranks that share positions times 2 data-parallel ones are not 8 ranks\n");
  CHECK(train_refusal({"--strategy=context", "--cost-model=puzzles"})
        == refused + "context: the cost model puzzles does not say what attention and its keys take, lab does\n");
  CHECK(train_refusal({"--strategy=expert", "--cost-model=transformer"})
        == refused + "the model has no experts that 8 ranks could share: qwen3-30b-a3b and others have\n");
  CHECK(train_refusal({"--strategy=expert", "--experts=3", "--ranks=3", "--global-batch=6", "--cost-model=transformer",
                       "--model=mixtral-8x7b"})
        == refused + "--experts: 3 does not divide the 8 experts of a layer\n");
  CHECK(
    train_refusal({"--strategy=context", "--cost-model=transformer", "--sequence=1000"})
    == refused
         + "--context: 16 does not divide the sequence of 1000 positions, of which each of 8 ranks has two parts\n");
  CHECK(train_refusal({"--strategy=3d", "--ranks=16", "--tensor=8", "--context=2", "--sequence=72", "--data=1",
                       "--sequence-parallel", "--cost-model=transformer", "--model=llama3-8b"})
        == refused + "--tensor: 8 does not divide the 36 of 72 positions that a rank has\n");
  CHECK(train_refusal({"--strategy=3d", "--context=3"})
        == refused + "8 ranks are no groups of 3 that share positions: --context must divide them\n");
  CHECK(
    train_refusal({"--strategy=3d", "--context=2", "--tensor=2", "--data=2", "--chunks=3"})
    == refused
         + "--chunks 3: tensor 2 x context 2 x data 2 on 8 ranks leave one stage, whose chunks have no next stage\n");
  CHECK(train_refusal({"--strategy=context", "--cost-model=measured"})
        == refused + "context: the cost model measured does not say what attention and its keys take, lab does\n");
  CHECK(train({"--strategy=expert", "--cost-model=puzzles"}).code == 0);
  const auto none = train({"--strategy=fsdp", "--prefetch=0"}), two = train({"--strategy=fsdp", "--prefetch=2"});
  CHECK(none.code == 0);
  CHECK(none.out != two.out);
  CHECK(train({"--strategy=context", "--context=4", "--layers=2"})
          .out.find("1 tensor x 4 context x 2 data x 1 pipeline parallel ranks\n")
        != std::string::npos);
}

TEST_CASE("simulate train: a transformer's ranks share positions and experts, its networks apart from attention") {
  const auto boxed = train({"--strategy=3d", "--ranks=16", "--tensor=2", "--context=2", "--experts=4",
                            "--global-batch=8", "--sequence-parallel", "--cost-model=transformer",
                            "--model=qwen3-30b-a3b"});
  CHECK(boxed.code == 0);
  CHECK(boxed.out.find("48 layers in 96 places, attention and networks apart, a global") != std::string::npos);
  const auto uneven = train({"--strategy=3d", "--ranks=8", "--data=2", "--tensor=1", "--experts=2", "--global-batch=8",
                             "--cost-model=transformer", "--model=deepseek-v3"});
  CHECK(uneven.out.find("61 layers in 128 places, attention and networks apart, with the embedding and the logits")
        != std::string::npos);
  temporary_directory dir;
  const auto picture = dir.path() / "expert.svg";
  CHECK(train({"--strategy=expert", "--ranks=4", "--experts=4", "--layers=2", "--global-batch=8", "--svg",
               picture.string(), "--cost-model=transformer", "--model=mixtral-8x7b"})
          .code
        == 0);
  CHECK(content_of(picture).find("expert: 4 ranks, 2 layers, 8 micro-batches") != std::string::npos);
  // Also where degrees are 1, 3d is what the closed form says.
  for (uint32_t data : {1, 4}) {
    CAPTURE(data);
    training::training_setting plan;
    plan.dp = data;
    plan.cp = 4;
    plan.global_batch = 4 * data;
    plan.zero = 1;
    plan.overlapped = true;
    const auto ranks = std::to_string(plan.devices()), side = std::to_string(data);
    const auto text = train({"--strategy=3d", "--ranks=" + ranks, "--context=4", "--tensor=1", "--data=" + side,
                             "--zero=1", "--global-batch=" + std::to_string(plan.global_batch),
                             "--cost-model=transformer", "--model=llama3-8b", "--system=b200"})
                        .out;
    REQUIRE(text.find("event, ") != std::string::npos);
    const auto estimate = estimate_iteration(*training::model_of("llama3-8b"), *training::system_of("b200"), plan);
    CHECK(std::stod(text.substr(text.find("event, ") + 7)) / 1000 == doctest::Approx(estimate.seconds).epsilon(0.05));
  }
  // Keys of long sequences go around behind attention; those that are gathered come before it.
  auto seconds = [](const std::string& strategy) {
    const auto text = train({"--strategy=" + strategy, "--ranks=4", "--global-batch=1", "--cost-model=transformer",
                             "--model=llama3-8b", "--sequence=131072", "--system=h100-80g"})
                        .out;
    return std::stod(text.substr(text.find("event, ") + 7));
  };
  CHECK(seconds("context") < seconds("context-gather"));
}

TEST_CASE("simulate train: --micro-batch and --chunks are gone by, or refused") {
  auto operations = [](std::vector<std::string> args) {
    args.insert(args.end(), {"--ranks=4", "--layers=4", "--global-batch=16", "--json"});
    auto result = train(args);
    REQUIRE(result.code == 0);
    auto read = parse_json(result.out);
    REQUIRE(read.engaged());
    return read->at("operations").get<uint64_t>();
  };
  for (auto* name : {"ddp", "wsdp", "zero1", "zero1-overlap", "zero2", "zero3", "fsdp", "hsdp"}) {
    const auto strategy = std::string{"--strategy="} + name;
    CAPTURE(strategy);
    CHECK(operations({strategy}) == operations({strategy, "--micro-batch=4"})); // all that a rank has
    CHECK(operations({strategy}) < operations({strategy, "--micro-batch=2"}));
    CHECK(train({strategy, "--micro-batch=2"}).out.find("in micro-batches of 2,") != std::string::npos);
    CHECK(train({strategy}).out.find("micro-batches") == std::string::npos);
  }
  CHECK(train_refusal({"--strategy=pipeline", "--micro-batch=4"})
        == "ringmaster simulate train: --micro-batch: pipeline on 8 ranks works on all 32 samples of a rank at once\n");
  CHECK(train({"--strategy=pipeline", "--micro-batch=32"}).code == 0); // which is so
  CHECK(train_refusal({"--strategy=1f1b", "--chunks=2"})
        == "ringmaster simulate train: --chunks: 1f1b on 8 ranks has one part of the model on each\n");
  CHECK(train_refusal({"--strategy=zb-v", "--chunks=3"}).find("has two parts of the model on each")
        != std::string::npos);
  CHECK(train({"--strategy=ddp-overlap", "--chunks=3"}).code == 0);
  CHECK(train_refusal({"--strategy=pipeline-fsdp", "--data=2", "--zero=1"})
        == "ringmaster simulate train: --zero: pipeline-fsdp on 8 ranks shares a stage as ZeRO's stage 3 does\n");
  for (auto [micro, right] : {std::pair{"16", "4"}, {"3", "2 or 4"}})
    CHECK(train_refusal({"--strategy=ddp", "--ranks=4", "--global-batch=16", std::string{"--micro-batch="} + micro})
          == fmt::format("ringmaster simulate train: --micro-batch {}: ddp on 4 ranks has 4 samples on each rank; {} "
                         "would divide them\n",
                         micro, right));
  // Options for all strategies apply to those that have them.
  auto table = train({"--strategy=all", "--micro-batch=4", "--chunks=4"}).out;
  CHECK(table.find("- --micro-batch:") == std::string::npos);
  CHECK(table.find("- --chunks:") == std::string::npos);
  CHECK(table.find("\nNot for --micro-batch: ddp-ordered, pipeline\n") != std::string::npos);
}

TEST_CASE("simulate train: a strategy that is nearly one of ours is suggested") {
  CHECK(train_refusal({"--strategy=gpip"}).find("there is no strategy \"gpip\": did you mean gpipe? There are: ddp, ")
        != std::string::npos);
}

TEST_CASE("simulate train: what does not fit on the system is said") {
  auto result = train({"--strategy=ddp", "--cost-model=transformer", "--model=megatron-22b", "--system=h100-80g"});
  CHECK(result.code == 0);
  CHECK(result.out.find("which does not fit: there is room for 81.52 GB\n") != std::string::npos);
}

TEST_CASE("simulate train: side by side those that fit come first, and of them the fastest") {
  std::vector<std::string> args{"--strategy=all", "--cost-model=transformer", "--model=gpt3-6.7b", "--global-batch=16",
                                "--micro-batch=2"};
  const auto table = train(args).out;
  CHECK(table.find("| fits into 81.90 GB |\n") != std::string::npos);
  std::vector<std::pair<bool, double>> order; // too large, time
  std::istringstream lines{table};
  for (std::string line; std::getline(lines, line);)
    if (line.ends_with(" yes |") || line.ends_with(" no |"))
      order.emplace_back(line.ends_with(" no |"), std::stod(line.substr(line.find('|', 1) + 1)));
  CHECK(order.size() > 10);
  CHECK(order.front().first == false);
  CHECK(order.back().first == true);
  CHECK(std::ranges::is_sorted(order));
  args.push_back("--json");
  const auto json = train(args).out;
  CHECK(occurrences(json, R"("fits":false)")
        == static_cast<size_t>(std::ranges::count_if(order, [](auto& x) { return x.first; })));
  CHECK(train({"--strategy=ddp", "--json"}).out.find(R"("room":null,"fits":null,)") != std::string::npos);
}

TEST_CASE(
  "simulate train: a trace that would be very large is refused with how large, and written where that is wanted") {
  temporary_directory dir;
  auto file = (dir.path() / "trace.json").string();
  std::vector<std::string> args{"train", "--strategy=gpipe", "--ranks=4", "--layers=8", "--trace", file};
  auto limited = args;
  limited.push_back("--trace-limit=64K");
  auto refused = run_command(simulate_command(), limited);
  CHECK(refused.code == 1);
  CHECK(refused.err.find("ringmaster simulate train: --trace-limit: the trace of ") == 0);
  CHECK(refused.err.find(", over the limit of 64 KiB: ") != std::string::npos);
  limited.back() = "--trace-limit=128K";
  auto part = [](const std::string& text) { return text.substr(0, text.find(", over the limit of")); };
  CHECK(part(run_command(simulate_command(), limited).err) == part(refused.err)); // it is the same trace
  CHECK(!std::filesystem::exists(file));
  CHECK(run_command(simulate_command(), args).code == 0);
  CHECK(std::filesystem::exists(file));
  CHECK(run_command(simulate_command(), {"train", "--strategy=ddp", "--trace-limit=1M"}).code == 2);
  limited.back() = "--trace-limit=10";
  CHECK(run_command(simulate_command(), limited).err.find("--trace-limit: \"10\" is not at least 64 KiB")
        != std::string::npos);
}
