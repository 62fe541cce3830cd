// `ringmaster train` as several processes, each with a rank on its own device.
#include "runtime/text/json_field.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/training/data/small_images.hpp"
#include "training/checkpoints/checkpoint_directory.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

using namespace ringmaster;

namespace {

std::vector<std::string> training_of(const std::vector<std::string>& before, const std::vector<std::string>& more) {
  auto result = before;
  for (auto& each : {"train", "--samples", "600", "--sizes", "32-16", "--deterministic", "--precision", "float64"})
    result.push_back(each);
  result.insert(result.end(), more.begin(), more.end());
  return result;
}

const std::vector<std::string> three_processes{RINGMASTER_CAF_RUN, "--ranks", "3", "--", RINGMASTER_PROGRAM};

/// The part of the JSON between two names, which has no time in it.
std::string losses_in(const std::string& output) {
  const auto begin = output.find("\"step_losses\""), end = output.find("\"notes\"");
  REQUIRE_MESSAGE(begin < end, output);
  return output.substr(begin, end - begin);
}

/// The text of that list in the JSON.
std::vector<double> losses_of(const std::string& output) {
  auto json = parse_json(output.substr(output.find('{')));
  REQUIRE_MESSAGE(json.engaged(), output);
  return json->at("step_losses").get<std::vector<double>>();
}

std::vector<pid_t> children_of(pid_t launcher) {
  std::ifstream children{fmt::format("/proc/{0}/task/{0}/children", launcher)};
  return {std::istream_iterator<pid_t>{children}, {}};
}

/// The launcher's process of this node.
pid_t node_of(pid_t launcher, const std::string& name) {
  for (auto each : children_of(launcher)) {
    std::ifstream file{fmt::format("/proc/{}/cmdline", each)};
    for (std::string word; std::getline(file, word, '\0');)
      if (word == name)
        return each;
  }
  return 0;
}

/// The value of a variable in a process's environment.
std::string variable_of(pid_t process, const std::string& name) {
  std::ifstream file{fmt::format("/proc/{}/environ", process)};
  for (std::string line; std::getline(file, line, '\0');)
    if (line.starts_with(name + "="))
      return line.substr(name.size() + 1);
  return "";
}

/// The launcher's processes that train, by rank.
std::map<int, pid_t> ranks_of(pid_t launcher) {
  std::map<int, pid_t> result;
  for (auto each : children_of(launcher))
    if (auto rank = variable_of(each, "RINGMASTER_RANK"); !rank.empty())
      result[std::stoi(rank)] = each;
  return result;
}

/// Whether a run has written any checkpoint: the first ones are deleted.
bool has_checkpoint(const std::filesystem::path& model) {
  auto there = training::checkpoint_directory{model, 3}.steps();
  return there && !there->empty();
}

/// Checks that the losses of `epochs` epochs are those of an undisturbed run on one rank.
void check_undisturbed(const std::string& output, uint64_t epochs) {
  launch::launched_program alone{
    training_of({RINGMASTER_PROGRAM}, {"--epochs", std::to_string(epochs), "--json", "--ranks", "1"})};
  CHECK(alone.finish() == 0);
  const auto found = losses_of(output), undisturbed = losses_of(alone.output);
  REQUIRE(undisturbed.size() == 9 * epochs);
  REQUIRE(found.size() == undisturbed.size());
  for (size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == doctest::Approx(undisturbed[i]).epsilon(1e-6));
}

} // namespace

TEST_CASE("rank processes: three processes train to the bits of three ranks in one process") {
  for (auto* strategy : {"ddp", "zero3", "1f1b", "tensor-naive"}) {
    const std::vector<std::string> how{"--strategy", strategy, "--micro-batch", "8", "--epochs", "2", "--json"};
    launch::launched_program together{training_of(three_processes, how)};
    auto more = how;
    more.insert(more.end(), {"--ranks", "3"});
    launch::launched_program alone{training_of({RINGMASTER_PROGRAM}, more)};
    CHECK_MESSAGE(together.finish() == 0, together.error);
    CHECK_MESSAGE(alone.finish() == 0, alone.error);
    CHECK(losses_in(together.output) == losses_in(alone.output));
  }
}

TEST_CASE("rank processes: a process that is killed costs its step, and the losses are those of an undisturbed run") {
  test::temporary_directory dir;
  const std::vector<std::string> how{"--epochs", "30", "--json", "--checkpoint", (dir.path() / "model").string()};
  launch::launched_program run{training_of(three_processes, how)};
  REQUIRE(run.wait_until([&] { return has_checkpoint(dir.path() / "model"); }));
  const auto ranks = ranks_of(run.child.pid());
  REQUIRE(ranks.size() == 3);
  ::kill(ranks.at(2), SIGKILL);
  CHECK(run.finish() != 0); // the launcher reports the killed process
  CHECK_MESSAGE(run.output.find("is lost: its process has exited") != std::string::npos, (run.output + run.error));
  CHECK_MESSAGE(run.output.find("\"ranks\":2") != std::string::npos, run.output);
  check_undisturbed(run.output, 30);
}

TEST_CASE("rank processes: a process whose device dies or hangs joins again with its node's new device") {
  test::temporary_directory dir;
  const std::vector<std::string> how{"--epochs", "60", "--json", "--checkpoint", (dir.path() / "model").string()};
  launch::launched_program run{training_of(three_processes, how)};
  REQUIRE(run.wait_until([&] { return has_checkpoint(dir.path() / "model"); }));
  const auto coordinator = variable_of(ranks_of(run.child.pid()).at(1), "RINGMASTER_COORDINATOR");
  for (uint64_t device : {1, 2, 3}) { // one of each process
    const auto* what = device == 2 ? "hang" : "kill";
    launch::launched_program fault{{RINGMASTER_PROGRAM, what, fmt::format("{:#x}", device), "--join", coordinator}};
    REQUIRE_MESSAGE(fault.finish() == 0, fault.error);
    REQUIRE_MESSAGE(run.await_output(fmt::format("joins again with device {:#x}", device + 3)),
                    (run.output + run.error));
  }
  CHECK_MESSAGE(run.finish() == 0, run.error);
  for (uint64_t device : {4, 5, 6})
    CHECK_MESSAGE(run.output.find(fmt::format("device {:#x} has joined, from the next step on", device))
                    != std::string::npos,
                  run.output);
  check_undisturbed(run.output, 60);
}

TEST_CASE("rank processes: after a kill that breaks the configured groups the others continue in fewer groups") {
  test::temporary_directory dir;
  const auto model = dir.path() / "model";
  launch::launched_program run{training_of({RINGMASTER_CAF_RUN, "--ranks", "4", "--", RINGMASTER_PROGRAM},
                                           {"--strategy", "tensor", "--tensor", "2", "--data-ranks", "2", "--epochs",
                                            "30", "--checkpoint", model.string()})};
  REQUIRE(run.wait_until([&] { return has_checkpoint(model); }));
  const auto ranks = ranks_of(run.child.pid());
  REQUIRE(ranks.size() == 4);
  ::kill(ranks.at(3), SIGKILL);
  run.finish(); // within its limit
  CHECK_MESSAGE(
    run.output.find(" on 2 ranks train, 2 tensor-parallel x 1 data-parallel in place of 2 tensor-parallel x "
                    "2 data-parallel; 1 more does nothing until others join\n")
      != std::string::npos,
    (run.output + run.error));
  CHECK(run.output.find("epoch 30/30") != std::string::npos);
}

TEST_CASE("rank processes: the layer with the first NaN is named, and missing costs are") {
  launch::launched_program strays{training_of(three_processes, {"--optimizer", "sgd", "--lr", "1e30"})};
  CHECK(strays.finish() != 0);
  CHECK_MESSAGE(strays.error.find("is not a finite number: the first layer with such an output is ")
                  != std::string::npos,
                strays.error);
  CHECK(strays.error.find("ringmaster train: the run has ended: the loss of ") != std::string::npos); // ranks 1 and 2
  launch::launched_program profiled{training_of(three_processes, {"--epochs", "2", "--profile"})};
  CHECK(profiled.finish() == 0);
  CHECK_MESSAGE(
    profiled.output.find("among ranks of one process, and these ranks are processes: there is no prediction\n")
      != std::string::npos,
    profiled.output);
}

TEST_CASE("rank processes: a node that is killed costs its step, and its devices are not used again") {
  test::temporary_directory dir;
  const auto model = dir.path() / "model";
  launch::launched_program run{
    training_of({RINGMASTER_CAF_RUN, "--local", "2", "--devices-per-node", "2", "--", RINGMASTER_PROGRAM},
                {"--ranks", "4", "--epochs", "30", "--json", "--checkpoint", model.string()})};
  REQUIRE(run.wait_until([&] { return has_checkpoint(model); }));
  const auto node = node_of(run.child.pid(), "node-2");
  REQUIRE(node != 0);
  ::kill(node, SIGKILL);
  run.finish(); // within its limit
  CHECK_MESSAGE(run.output.find("\"ranks\":2") != std::string::npos, (run.output + run.error));
  CHECK(losses_of(run.output).size() == 270);
}

TEST_CASE("rank processes: without the coordinator the run ends at once with an error") {
  auto not_restarted = three_processes;
  not_restarted.insert(not_restarted.begin() + 1, {"--coordinator-restarts", "0"});
  launch::launched_program run{training_of(not_restarted, {"--epochs", "4000"})};
  REQUIRE(run.await_output("epoch    2/4000"));
  const auto coordinator = node_of(run.child.pid(), "coordinator");
  REQUIRE(coordinator != 0);
  ::kill(coordinator, SIGKILL);
  CHECK(run.finish() > 0); // within its limit
  CHECK_MESSAGE(run.error.find("ringmaster train: the coordinator has exited or is unreachable, in step ")
                  != std::string::npos,
                run.error);
}

TEST_CASE("rank processes: the run ends with the process of rank 0, and the others report that") {
  launch::launched_program run{training_of(three_processes, {"--epochs", "4000"})};
  REQUIRE(run.await_output("epoch    2/4000"));
  const auto ranks = ranks_of(run.child.pid());
  REQUIRE(ranks.size() == 3);
  ::kill(ranks.at(0), SIGKILL);
  CHECK(run.finish() > 0); // within its limit
  const std::string sentence = "ringmaster train: rank 0, which has the trainer, has exited or lost this process: ";
  const auto one = run.error.find(sentence), other = run.error.find(sentence, one + 1);
  CHECK_MESSAGE(other != std::string::npos, run.error);
  CHECK(run.error.find("another run continues it (--checkpoint DIR --resume)") != std::string::npos);
}

TEST_CASE("rank processes: a run that is asked to stop keeps its model and reports, and another run resumes") {
  test::temporary_directory dir;
  const auto model = (dir.path() / "model").string(), picture = (dir.path() / "loss.svg").string();
  for (auto& before : {std::vector<std::string>{RINGMASTER_PROGRAM}, three_processes}) {
    std::filesystem::remove_all(dir.path() / "model");
    const std::vector<std::string> how{"--strategy", "zero3", "--epochs", "4000", "--checkpoint", model, "--json"};
    auto more = how;
    more.insert(more.end(), {"--svg", picture});
    launch::launched_program run{training_of(before, more)};
    REQUIRE(run.wait_until([&] { return has_checkpoint(dir.path() / "model"); }));
    ::kill(run.child.pid(), SIGTERM);
    CHECK(run.finish() == 1);
    CHECK_MESSAGE(run.error.find("ringmaster train: the run was asked to stop") != std::string::npos, run.error);
    const std::string of_others = "ringmaster train: the run has ended: the run was asked to stop";
    const auto one = run.error.find(of_others), other = run.error.find(of_others, one + 1);
    CHECK_MESSAGE((before.size() == 1 || (one != std::string::npos && other != std::string::npos)), run.error);
    const auto done = losses_of(run.output).size();
    CHECK(done >= 9);
    CHECK_MESSAGE(std::filesystem::exists(dir.path() / "model" / fmt::format("step-{:06}.safetensors", done)),
                  run.output);
    CHECK(std::filesystem::exists(picture));
    std::filesystem::remove(picture);
  }
}

TEST_CASE("rank processes: a process that is asked to stop hands over its parts, and the others finish") {
  launch::launched_program run{training_of(three_processes, {"--strategy", "zero3", "--epochs", "60"})};
  REQUIRE(run.await_output("epoch  2/60"));
  ::kill(ranks_of(run.child.pid()).at(2), SIGTERM);
  CHECK(run.finish() == 0);
  CHECK_MESSAGE(run.output.find(" has left; its parts of the model are taken over") != std::string::npos, run.output);
  CHECK_MESSAGE(run.output.find("to be done again") == std::string::npos, run.output);
  CHECK_MESSAGE(run.output.find("epoch 60/60") != std::string::npos, run.output);
}

TEST_CASE("rank processes: a number of ranks other than the launcher's is refused") {
  launch::launched_program run{training_of(three_processes, {"--ranks", "2"})};
  CHECK(run.finish() == 2);
  CHECK_MESSAGE(run.error.find("--ranks 2: caf-run has started 3 ranks: omit the option") != std::string::npos,
                run.error);
}

TEST_CASE("rank processes: processes with different settings do not train, and each says why") {
  const auto line = fmt::format("exec {} train --epochs 2 --seed $((RINGMASTER_RANK + 1))", RINGMASTER_PROGRAM);
  launch::launched_program run{{RINGMASTER_CAF_RUN, "--ranks", "2", "--", "sh", "-c", line}};
  CHECK(run.finish() == 2);
  const std::string why = " trains with seed 2, rank 0's with seed 1: all need the same settings";
  CHECK_MESSAGE(run.error.find("ringmaster train: the process of device ") != std::string::npos, run.error);
  CHECK_MESSAGE(run.error.find("ringmaster train: the run has ended: the process of device ") != std::string::npos,
                run.error);
  CHECK(run.error.find(why) != run.error.rfind(why));
}

TEST_CASE("rank processes: processes whose data differ in one byte do not train, and each says why") {
  test::temporary_directory dir;
  for (int rank : {0, 1}) {
    test::image_folder images;
    images.write_idx(40, 4);
    std::filesystem::copy(images.path(), dir.path() / std::to_string(rank));
  }
  for (const std::string file : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte"}) {
    CAPTURE(file);
    const auto damaged = dir.path() / "1" / file;
    const auto whole = test::content_of(damaged);
    auto content = whole;
    content[23] ^= 1;
    test::write_content(damaged, content);
    const auto line = fmt::format("exec {} train --sizes 4 --global-batch 4 --epochs 1 --data {}/$RINGMASTER_RANK",
                                  RINGMASTER_PROGRAM, dir.path().string());
    launch::launched_program run{{RINGMASTER_CAF_RUN, "--ranks", "2", "--", "sh", "-c", line}};
    CHECK(run.finish() == 2);
    CHECK_MESSAGE(run.error.find(" of IDX images, digest ") != std::string::npos, run.error);
    CHECK_MESSAGE(run.error.find(": all need the same settings") != std::string::npos, run.error);
    CHECK(run.output.find("epoch 1/1") == std::string::npos);
    test::write_content(damaged, whole);
  }
}

TEST_CASE("rank processes: the others do not wait if rank 0 cannot start") {
  test::temporary_directory dir;
  training::checkpoint_directory taken{dir.path(), 1};
  REQUIRE(!taken.claim());
  launch::launched_program run{training_of(three_processes, {"--checkpoint", dir.path().string()})};
  CHECK(run.finish() == 1); // within its limit
  CHECK_MESSAGE(run.error.find(": another run writes its checkpoints there, and has not ended") != std::string::npos,
                run.error);
  CHECK_MESSAGE(
    run.error.find("ringmaster train: rank 0 has exited before it started to train: see its output for the reason")
      != std::string::npos,
    run.error);
}
