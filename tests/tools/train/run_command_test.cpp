// `ringmaster train` in this process: real threads, real memory, generated digits.
#include "runtime/text/json_field.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"
#include "tests/training/data/small_images.hpp"
#include "tools/options/commands.hpp"
#include "training/checkpoints/checkpoint_directory.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

outcome train_digits(std::vector<std::string> more) {
  std::vector<std::string> args{"--samples", "600", "--deterministic", "--lr", "0.01"};
  args.insert(args.end(), more.begin(), more.end());
  return run_command(train_for_real_command(), args);
}

/// The numbers of a list in the command's JSON.
std::vector<double> list_of(const outcome& x, const std::string& name) {
  auto json = parse_json(x.out);
  REQUIRE_MESSAGE(json.engaged(), (x.out + x.err));
  return json->at(name).get<std::vector<double>>();
}

/// Of the last step of each epoch in the command's JSON.
std::vector<double> ranks_of_epochs(const outcome& x) {
  const auto json = parse_json(x.out);
  REQUIRE_MESSAGE(json.engaged(), (x.out + x.err));
  std::vector<double> result;
  for (auto& epoch : json->at("epochs"))
    result.push_back(epoch.at("ranks").get<double>());
  return result;
}

} // namespace

TEST_CASE("train: a model learns, and its results are printed") {
  auto found = train_digits({"--epochs", "4", "--ranks", "2", "--sizes", "32"});
  CHECK(found.code == exit_ok);
  CHECK(found.err == "");
  CHECK(
    found.out.find("Training mlp by ddp on 2 ranks: 600 samples of synthetic digits\n100 held out; 25450 parameters")
    == 0);
  CHECK(found.out.find("\n24 samples of each epoch, others each time, are left out: they fill no batch of 64\n\n")
        != std::string::npos);
  CHECK(found.out.find("\nepoch 4/4  loss 0.") != std::string::npos);
  CHECK(found.out.find("36 steps in ") != std::string::npos);
}

TEST_CASE("train: --tensorboard writes a file of events, and a directory that cannot be made ends the command early") {
  temporary_directory directory;
  auto found = train_digits({"--epochs", "1", "--ranks", "2", "--tensorboard", directory.path().string()});
  CHECK(found.code == exit_ok);
  const auto file = std::filesystem::directory_iterator {
    directory.path()
    } -> path();
  CHECK(found.out.find("Wrote " + file.string() + ".\n") != std::string::npos);
  const auto events = content_of(file);
  for (auto tag : {"loss/training", "accuracy/training", "speed/step_seconds", "loss/held_out"})
    CHECK_MESSAGE(events.find(tag) != std::string::npos, tag);

  found = train_digits({"--epochs", "1", "--tensorboard", (file / "below").string()});
  CHECK(found.code == exit_failed);
  CHECK(found.err.find("--tensorboard: cannot make the directory " + (file / "below").string()) != std::string::npos);
}

TEST_CASE("train: the losses are those of one rank with any strategy and number of ranks") {
  const std::vector<std::string> model{"--sizes", "32-24-16",    "--global-batch", "30",
                                       "--json",  "--precision", "float64"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), model.begin(), model.end());
    return list_of(train_digits(std::move(more)), "step_losses");
  };
  const auto alone = with({"--ranks", "1"});
  REQUIRE(alone.size() == 60);
  for (auto& how : std::vector<std::vector<std::string>>{{"--ranks", "4"},
                                                         {"--ranks", "3", "--strategy", "zero3", "--micro-batch", "4"},
                                                         {"--ranks", "4", "--strategy", "hsdp", "--prefetch", "2"},
                                                         {"--ranks", "4", "--strategy", "zb-h1", "--micro-batch", "5"},
                                                         {"--ranks", "4", "--strategy", "tensor", "--tensor", "2"}}) {
    const auto found = with(how);
    REQUIRE(found.size() == alone.size());
    for (size_t i = 0; i < found.size(); ++i)
      CHECK(found[i] == doctest::Approx(alone[i]).epsilon(1e-9));
  }
}

TEST_CASE("train: by default a pipeline has four micro-batches a stage, or the number that its strategy allows") {
  auto of = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--epochs", "1", "--json"});
    const auto found = train_digits(std::move(more));
    const auto json = parse_json(found.out);
    REQUIRE_MESSAGE(json.engaged(), (found.out + found.err));
    return json->at("micro_batch").get<uint32_t>();
  };
  const std::string six = "8-8-8-8-8";
  CHECK(of({"--strategy", "1f1b", "--ranks", "2"}) == 8);
  CHECK(of({"--strategy", "dualpipe", "--ranks", "2", "--global-batch", "63"}) == 4); // 16 micro-batches, not 9
  CHECK(of({"--strategy", "interleaved", "--ranks", "3", "--sizes", six}) == 11);     // 6: less would be 8, 9, ...
  CHECK(of({"--strategy", "1f1b", "--ranks", "2", "--micro-batch", "3"}) == 3);
  CHECK(of({"--strategy", "ddp", "--ranks", "2"}) == 32);
}

TEST_CASE("train: a device that is killed costs only its step") {
  auto whole = list_of(train_digits({"--ranks", "3", "--epochs", "2", "--json", "--precision", "float64"}),
                       "step_losses");
  auto found = train_digits({"--ranks", "3", "--epochs", "2", "--json", "--precision", "float64", "--kill", "7"});
  CHECK(found.code == exit_ok);
  CHECK(found.out.find("is lost: killed on request") != std::string::npos);
  const auto losses = list_of(found, "step_losses");
  REQUIRE(losses.size() == whole.size());
  for (size_t i = 0; i < whole.size(); ++i)
    CHECK(losses[i] == doctest::Approx(whole[i]).epsilon(1e-9));
  const auto times = list_of(found, "step_times");
  CHECK(times.size() == losses.size());
  CHECK(std::ranges::all_of(times, [](double x) { return x > 0 && x < 60; }));
}

TEST_CASE("train: a killed device costs only its step with sharding strategies, too, unless there is no mirror") {
  for (const std::string mirror : {"on", "off"}) {
    CAPTURE(mirror);
    std::vector<std::string> how{"--ranks", "3",        "--strategy", "zero3",  "--sizes",
                                 "16",      "--epochs", "1",          "--kill", "5"};
    if (mirror == "off")
      how.emplace_back("--no-mirror");
    auto found = train_digits(how);
    CHECK(found.code == exit_ok);
    CHECK_MESSAGE(contains(found.out, "is lost: killed on request"), found.out);
    CHECK_MESSAGE(contains(found.out, "back to the first weights; to be done again: ") == (mirror == "off"), found.out);
  }
}

TEST_CASE("train: a device is killed in the given step, or just after it, also in the last one") {
  auto told = train_digits({"--ranks", "2", "--sizes", "8-8-8", "--epochs", "1", "--kill", "5", "--strategy",
                            "interleaved", "--mirror"});
  CHECK_MESSAGE(told.out.find(" samples/s on 1 to 2 ranks\n") != std::string::npos, told.out);
  CHECK_MESSAGE(told.out.find(" on 2 ranks train, by interleaved again\n") != std::string::npos, told.out);
  CHECK_MESSAGE(told.out.find(" on 1 rank trains, by 1f1b in place of interleaved\n") != std::string::npos, told.out);
  auto found = train_digits({"--ranks", "2", "--sizes", "8", "--epochs", "1", "--json", "--kill", "8"});
  CHECK(found.code == exit_ok);
  CHECK(list_of(found, "step_losses").size() == 9);
  CHECK_MESSAGE(found.out.find("killed on request") != std::string::npos, found.out);
}

TEST_CASE("train: with --deterministic the ranks that are left compute the bits of a run that starts with them") {
  for (const std::string strategy : {"1f1b", "gpipe", "zero3"}) {
    CAPTURE(strategy);
    temporary_directory dir;
    const auto with = [&](const std::string& folder, std::vector<std::string> more) {
      std::vector<std::string> all{"--deterministic",
                                   "--strategy",
                                   strategy,
                                   "--sizes",
                                   "16-16",
                                   "--samples",
                                   "60",
                                   "--seed",
                                   "5",
                                   "--global-batch",
                                   "60", // one step an epoch
                                   "--json",
                                   "--checkpoint",
                                   (dir.path() / folder).string()};
      all.insert(all.end(), more.begin(), more.end());
      auto found = run_command(train_for_real_command(), all);
      REQUIRE_MESSAGE(found.code == exit_ok, (found.out + found.err));
      return found;
    };
    const auto killed = with("killed", {"--ranks", "3", "--epochs", "8", "--kill", "4"});
    const auto ranks = ranks_of_epochs(killed);
    REQUIRE(ranks.size() == 8);
    CHECK_MESSAGE(contains(killed.out, "is lost: killed on request"), killed.out);
    // Three, then two, and three again when the node's new device has joined: each time like a separate run.
    for (size_t begin = 0, end = 0; begin < ranks.size(); begin = end) {
      while (end < ranks.size() && ranks[end] == ranks[begin])
        ++end;
      std::vector<std::string> part{"--ranks", fmt::format("{}", ranks[begin]), "--epochs", std::to_string(end)};
      if (begin > 0)
        part.emplace_back("--resume");
      with("fresh", part);
    }
    CHECK(content_of(dir.path() / "killed" / "step-000008.safetensors")
          == content_of(dir.path() / "fresh" / "step-000008.safetensors"));
  }
}

TEST_CASE("train: a run resumes from its checkpoint, with another strategy") {
  temporary_directory dir;
  const auto place = (dir.path() / "model").string();
  const std::vector<std::string> common{"--json", "--precision", "float64", "--checkpoint", place};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), common.begin(), common.end());
    return train_digits(std::move(more));
  };
  const auto whole = list_of(train_digits({"--epochs", "4", "--json", "--precision", "float64"}), "step_losses");
  with({"--epochs", "2"});
  const auto rest = list_of(with({"--epochs", "4", "--resume", "--strategy", "zero2", "--ranks", "3"}), "step_losses");
  REQUIRE(whole.size() == 36);
  REQUIRE(rest.size() == 18);
  for (size_t i = 0; i < rest.size(); ++i)
    CHECK(rest[i] == doctest::Approx(whole[18 + i]).epsilon(1e-9));

  auto other = with({"--epochs", "9", "--resume", "--sizes", "16"});
  CHECK(other.code == exit_failed);
  CHECK(other.err.find(
          "step-000036.safetensors is of another model: linear 784x128, relu linear 128x10; this one is linear "
          "784x16, relu linear 16x10")
        != std::string::npos);
  auto elsewhere = run_command(train_for_real_command(), {"--samples", "640", "--precision", "float64", "--checkpoint",
                                                          place, "--epochs", "9", "--resume"});
  CHECK(elsewhere.code == exit_failed);
  CHECK_MESSAGE(elsewhere.err.find("step-000036.safetensors: its data is 600 samples of synthetic digits, fingerprint ")
                  != std::string::npos,
                elsewhere.err);
  CHECK_MESSAGE(elsewhere.err.find(", and this run's 640 samples of synthetic digits, fingerprint ")
                  != std::string::npos,
                elsewhere.err);
  auto drawn_apart = with({"--epochs", "9", "--resume", "--seed", "8"});
  CHECK_MESSAGE(drawn_apart.err.find("step-000036.safetensors: its seed is 1234, and this run's 8: ")
                  != std::string::npos,
                drawn_apart.err);
  auto in_other_batches = with({"--epochs", "9", "--resume", "--global-batch", "32"});
  CHECK_MESSAGE(in_other_batches.err.find("its global_batch is 64, and this run's 32: ") != std::string::npos,
                in_other_batches.err);
  auto by_another = with({"--epochs", "9", "--resume", "--optimizer", "adamw"});
  CHECK_MESSAGE(
    by_another.err.find("its optimizer is adam, and this run's adamw: its state is in the checkpoint, "
                        "and another optimizer cannot use it; with the old value the run continues, and with "
                        "another --checkpoint it starts again")
      != std::string::npos,
    by_another.err);
  auto done = with({"--epochs", "4", "--resume"});
  CHECK(done.code == exit_usage);
  CHECK(done.err.find("has done all 36 steps already: more epochs are needed to continue") != std::string::npos);
  auto past = with({"--epochs", "9", "--resume", "--kill", "36"});
  CHECK(past.code == exit_usage);
  CHECK(past.err.find("no device can be killed in step 36: the run resumes at step 36, from ") != std::string::npos);
  auto decayed = with({"--epochs", "5", "--resume", "--weight-decay", "0.01"});
  CHECK_MESSAGE(decayed.code == exit_ok, decayed.err);
  CHECK_MESSAGE(decayed.out.find("step-000036.safetensors: its weight_decay was 0, and is 0.01 from now on")
                  != std::string::npos,
                decayed.out);
  CHECK(decayed.out.find("learning_rate") == std::string::npos);
}

TEST_CASE("train: a checkpoint resumes only with its own data: one other byte is noticed") {
  image_folder images;
  images.write_idx(200, 4);
  temporary_directory dir;
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--sizes", "4", "--global-batch", "20", "--data", images.path().string(), "--checkpoint",
                             (dir.path() / "model").string()});
    return run_command(train_for_real_command(), more);
  };
  CHECK(with({"--epochs", "1"}).code == exit_ok);
  images.overwrite("train-images-idx3-ubyte", 16 + 610, "\xee"); // in a sample that a sparse check would miss
  const auto refused = with({"--epochs", "2", "--resume"});
  CHECK(refused.code == exit_failed);
  CHECK_MESSAGE(contains(refused.err, "step-000010.safetensors: its data_digest is "), refused.err);
  CHECK_MESSAGE(contains(refused.err, ": some bytes of the data differ"), refused.err);
  images.write_idx(200, 4);
  CHECK(with({"--epochs", "2", "--resume"}).code == exit_ok);
}

TEST_CASE("train: images of more than ten classes get as many outputs, also from a folder within") {
  image_folder images;
  images.write_idx(200, 50);
  const auto raw = images.path() / "EMNIST" / "raw";
  std::filesystem::create_directories(raw);
  images.overwrite("train-labels-idx1-ubyte", 8 + 50, "\x2e");
  for (auto* name :
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"})
    std::filesystem::rename(images.path() / name, raw / name);
  const auto found = run_command(train_for_real_command(),
                                 {"--sizes", "5", "--data", images.path().string(), "--epochs", "2"});
  CHECK_MESSAGE(found.code == exit_ok, found.err);
  CHECK_MESSAGE(contains(found.out, "200 samples of IDX images, from " + raw.string() + "\n"), found.out);
  CHECK_MESSAGE(contains(found.out, ": linear 6x5, relu linear 5x47\n"), found.out);
  CHECK_MESSAGE(contains(found.out, "epoch 2/2"), found.out);
}

TEST_CASE("train: a folder with an earlier run's checkpoints is refused, and not changed") {
  temporary_directory dir;
  const auto place = dir.path() / "model";
  const auto first = place / "step-000009.safetensors";
  CHECK(train_digits({"--epochs", "1", "--checkpoint", place.string()}).code == exit_ok);
  const auto written = std::filesystem::last_write_time(first);
  auto again = train_digits({"--epochs", "2", "--checkpoint", place.string()});
  CHECK(again.code == exit_usage);
  CHECK_MESSAGE(
    again.err.find(place.string()
                   + " has checkpoints of an earlier run, up to step 9: --resume continues from there, and a "
                     "new run needs another folder")
      != std::string::npos,
    again.err);
  CHECK(std::filesystem::last_write_time(first) == written);
  CHECK(!std::filesystem::exists(place / "step-000018.safetensors"));
}

TEST_CASE("train: a torn checkpoint is named, and the one before is used") {
  temporary_directory dir;
  const auto place = dir.path() / "model";
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--precision", "float64", "--checkpoint", place.string()});
    return train_digits(std::move(more));
  };
  const auto whole = list_of(train_digits({"--epochs", "3", "--json", "--precision", "float64"}), "step_losses");
  CHECK(with({"--epochs", "2"}).code == exit_ok);
  const auto torn = place / "step-000018.safetensors";
  std::filesystem::resize_file(torn, std::filesystem::file_size(torn) / 2);
  auto told = with({"--epochs", "3", "--resume"});
  CHECK(told.code == exit_ok);
  CHECK_MESSAGE(told.out.find(torn.string()) != std::string::npos, told.out);
  CHECK_MESSAGE(told.out.find("resumes at step 9 of 27, from ") != std::string::npos, told.out);
  std::filesystem::remove(place / "step-000027.safetensors");
  std::filesystem::resize_file(place / "step-000018.safetensors", 100);
  const auto rest = list_of(with({"--epochs", "3", "--resume", "--json"}), "step_losses");
  REQUIRE(whole.size() == 27);
  REQUIRE(rest.size() == 18);
  for (size_t i = 0; i < rest.size(); ++i)
    CHECK(rest[i] == doctest::Approx(whole[9 + i]).epsilon(1e-9));
}

TEST_CASE("train: impossible options are refused before training") {
  auto error_of = [](std::vector<std::string> args) {
    auto found = run_command(train_for_real_command(), args);
    CHECK(found.code != exit_ok);
    CHECK(found.out == "");
    return found.err;
  };
  auto says = [&](std::vector<std::string> args, const std::string& what) {
    const auto found = error_of(std::move(args));
    CHECK_MESSAGE(found.find(what) != std::string::npos, found);
  };
  says({"--strategy", "context"}, "ranks that share positions need layers of attention");
  says({"--strategy", "expert"}, "ranks that share experts need layers of experts and a router");
  says({"--strategy", "all"}, "--strategy all is for simulate train: here it is one strategy, such as ddp");
  says({"--model", "lenet"}, "there is no model \"lenet\" here; there are mlp");
  says({"--mirror", "--no-mirror"}, "--mirror and --no-mirror cannot both be given");
  says({"--sizes", "12-x"}, "\"12-x\" is not a list of sizes such as 256-64");
  says({"--micro-batch", "65"}, "--micro-batch 65: a global batch has 64 samples");
  says({"--strategy", "ddp-ordered", "--virtual-ranks", "100"},
       "a global batch of 64 samples has none for each of 100 virtual ranks: --virtual-ranks 64 at most");
  says({"--bogus.key=3"}, "--bogus.key=3: there is no key bogus.key; the sections are ");
  says({"--device.cuont=3"}, "there is no key device.cuont; section [device] has count, ");
  says({"--lr", "fast"}, "\"fast\" is not a number from 0 to 1e+38, such as 0.001");
  says({"--lr", "1e400"}, "\"1e400\" is not a number from 0 to 1e+38");
  says({"--lr", "0x10"}, "\"0x10\" is not a number from 0 to 1e+38");
  says({"--resume"}, "--resume needs --checkpoint DIR");
  says({"--strategy", "1f1b", "--ranks", "8"}, "8 stages need a model of as many layers at least, not 2");
  says(
    {"--strategy", "tensor-naive", "--sizes", "3", "--ranks", "4"},
    "4 ranks cannot share layer 0, linear 784x3: the 3 columns of weight are too few for 4 ranks; --tensor 2 would do");
  says({"--data", "/nowhere"}, "/nowhere");
  says({"--strategy", "tensor", "--tensor", "2", "--ranks", "4", "--data", "/nowhere"}, "/nowhere");
  says({"--svg", "/nowhere/loss.svg"}, "cannot write the picture '/nowhere/loss.svg': No such file or directory");
  says({"--profile", "--trace", "/dev"}, "cannot write the trace '/dev': Is a directory");
  says({"--svg", "both.out", "--trace", "both.out"},
       "--svg and --trace both name both.out: each needs a file of its own");
  temporary_directory texts;
  for (auto* name : {"a.txt", "b.txt", "c.txt"})
    write_content(texts.path() / name, std::string(2000, 'x'));
  says({"--data", texts.path().string()},
       ": mlp needs images, and neither train-images-idx3-ubyte, train-labels-idx1-ubyte, ");
  says({"--samples", "600", "--data", "/nowhere"},
       "--samples: says how many digits are drawn; with --data there are as many samples as its files hold");
  says({"--global-batch", "1"}, "there is none for each of 2 ranks");
  says({"--samples", "20"}, "20 samples never fill a batch of 64: take smaller batches\n");
}

TEST_CASE("train: the JSON of a profiled run has the simulator's figures") {
  auto found = train_digits({"--epochs", "2", "--profile", "--json"});
  REQUIRE(found.code == exit_ok);
  auto json = parse_json(found.out);
  REQUIRE(json);
  const auto& simulated = json->at("simulated");
  CHECK(simulated.at("step_seconds") > 0);
  CHECK(simulated.at("peak_bytes") > 25450 * 4); // the weights, at least
  CHECK(simulated.at("tuned_step_seconds") > 0);
}

TEST_CASE("train: files that can be written are written if others fail, and an unsaved model is reported last") {
  temporary_directory dir;
  const auto trace = dir.path() / "trace.json";
  const auto found = train_digits({"--epochs", "1", "--svg", "/dev/full", "--trace", trace.string()});
  CHECK(found.code == exit_failed);
  CHECK(found.err.find("cannot write the picture '/dev/full'") != std::string::npos);
  CHECK(found.out.find("Wrote " + trace.string()) != std::string::npos);
  CHECK(std::filesystem::file_size(trace) > 0);
}

TEST_CASE("train: the run ends when its output is closed, and its model is saved") {
  temporary_directory dir;
  const auto kept = (dir.path() / "kept").string(), status = (dir.path() / "status").string();
  const auto train = fmt::format(
    "'{}' train --samples 600 --epochs 100000 --checkpoint '{}' 2>/dev/null; echo $? >'{}'", RINGMASTER_PROGRAM, kept,
    status);
  REQUIRE(std::system(fmt::format("({}) | head -n 1 >/dev/null", train).c_str()) == 0);
  CHECK(content_of(status) == "1\n"); // and not a signal's
  CHECK(!training::checkpoint_directory{kept, 1}.steps()->empty());
}

TEST_CASE("train: a strategy is checked with the given chunks and micro-batches, not with its defaults") {
  CHECK(train_digits({"--strategy", "3d", "--chunks", "1", "--data-ranks", "2"}).code == exit_ok);
  CHECK(train_digits({"--strategy", "interleaved", "--micro-batch", "4", "--sizes", "16-16-16"}).code == exit_ok);
}

TEST_CASE("train: a loss that is not finite ends the run") {
  auto found = run_command(train_for_real_command(), {"--samples", "600", "--optimizer", "sgd", "--lr", "1e30"});
  CHECK(found.code == exit_failed);
  CHECK_MESSAGE(found.err.find(
                  "the loss of rank 0 in step 1 is not a finite number: the first layer with such an output is 1, relu "
                  "linear 128x10, on rank 0; a lower learning rate, or inputs without infinities, would help")
                  != std::string::npos,
                found.err);
}

TEST_CASE("train: a profiled step is printed next to the simulator's result with its costs") {
  temporary_directory dir;
  const auto file = (dir.path() / "step.json").string();
  auto found = train_digits({"--epochs", "2", "--strategy", "1f1b", "--micro-batch", "16", "--profile", "--trace",
                             file});
  CHECK(found.code == exit_ok);
  CHECK_MESSAGE(found.out.find("the simulator, with the costs of 8 steps from 10 to 17, says ") != std::string::npos,
                found.out);
  CHECK(found.out.find("with communications by section [costs], which `ringmaster tune` has not measured here, ")
        != std::string::npos);
  CHECK(found.out.find("memory of a rank: ") != std::string::npos);
  auto trace = parse_json(content_of(file));
  REQUIRE(trace);
  // Two ranks of a stage each: 4 micro-batches forward and backward, measured and simulated.
  size_t forwards = 0;
  for (auto& each : trace->at("traceEvents"))
    forwards += each.at("name") == "forward" ? 1 : 0;
  CHECK(forwards == 16);
  // Of each, 4 outputs and 4 gradients cross, and every receive has the arrow of its send.
  std::map<uint64_t, int> ends;
  for (auto& each : trace->at("traceEvents"))
    if (each.at("name") == "sent")
      ++ends[each.at("id").get<uint64_t>()];
  CHECK(ends.size() == 16);
  CHECK(std::ranges::all_of(ends, [](auto& x) { return x.second == 2; }));
  CHECK(content_of(file).find("\"measured\"") != std::string::npos);
  CHECK(content_of(file).find("\"simulated\"") != std::string::npos);
}
