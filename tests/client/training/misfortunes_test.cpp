// Failures around training on real threads: disks, data, memory.
#include "messages/errc.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/training/layer_like.hpp"
#include "tests/support/training/sociable_layer.hpp"
#include "tests/support/training/threaded_training.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

/// Digits; one of them cannot be read.
class torn_digits final : public data_set {
public:
  explicit torn_digits(std::shared_ptr<const data_set> of) : of_(std::move(of)) {}

  std::string name() const override { return "torn digits"; }
  uint32_t count() const override { return of_->count(); }
  sample_shape shape() const override { return of_->shape(); }
  uint32_t label_count() const override { return of_->label_count(); }

private:
  void fill_one(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const override {
    if (sample == 17)
      throw std::runtime_error{"digits.bin ends at byte 13328"};
    if (auto problem = of_->fill({&sample, 1}, input, labels))
      throw std::runtime_error{render(problem)};
  }

  std::shared_ptr<const data_set> of_;
};

/// The same, for a layer that ranks cannot share.
class whole_layer final : public sociable_layer {
public:
  using sociable_layer::sociable_layer;
  caf::error cannot_share(uint32_t) const override { return ringmaster::invalid("it stays whole"); }
};

std::string sentence_of(run_settings settings, const run_watcher& watcher = {}) {
  threaded_cluster on{settings.ranks};
  auto found = train(on.system(), on.coordinator(), std::move(settings), watcher);
  REQUIRE(!found);
  return render(found.error());
}

void check_found(const std::string& text, std::string_view what) {
  CHECK_MESSAGE(text.find(what) != std::string::npos, text);
}

} // namespace

TEST_CASE("misfortunes: a full disk costs a checkpoint, with a note, but no step; the last one stays readable") {
  temporary_directory dir;
  auto settings = digits_by("zero3", 2);
  settings.epochs = 3;
  settings.checkpoints = dir.path() / "model";
  const auto undisturbed = train_killed(settings, 0, 1).losses;
  std::filesystem::remove_all(settings.checkpoints);

  threaded_cluster on{2};
  std::optional<file_size_limit> full;
  std::string said;
  std::vector<double> losses;
  run_watcher watcher;
  watcher.step_done = [&](const step_report& x) { losses.push_back(x.loss); };
  watcher.note = [&](const std::string& x) { said += x + "\n"; };
  watcher.epoch_done = [&](const epoch_report& x) {
    full.reset();
    if (x.epoch == 1)
      full.emplace(1000);
  };
  auto found = train(on.system(), on.coordinator(), settings, watcher);
  REQUIRE_MESSAGE(found.engaged(), (found ? "" : render(found.error())));
  CHECK(losses == undisturbed);
  CHECK(!found->not_kept); // the last one was saved
  check_found(said, "no checkpoint of step 40, and training continues: ");
  check_found(said, "step-000040.safetensors: cannot be written: File too large after 1000 of ");
  check_found(said, "; what was there before stays; make room on the disk: the next one is due after epoch 3\n");
  const checkpoint_directory there{settings.checkpoints, 3};
  CHECK(*there.steps() == std::vector<uint64_t>{20, 60});
  std::filesystem::remove(there.file_of(60));
  auto before = load_checkpoint(there, *found->job, *settings.data.training);
  REQUIRE(before);
  REQUIRE(before->has_value());
  CHECK((*before)->image.step == 20);
}

TEST_CASE("misfortunes: a run whose last model is in no checkpoint ends with the reason") {
  temporary_directory dir;
  auto settings = digits_by("ddp", 2);
  settings.epochs = 2;
  settings.checkpoints = dir.path() / "model";
  threaded_cluster on{2};
  std::optional<file_size_limit> full;
  run_watcher watcher;
  watcher.epoch_done = [&](auto&) { full.emplace(1000); };
  auto found = train(on.system(), on.coordinator(), settings, watcher);
  full.reset();
  REQUIRE_MESSAGE(found.engaged(), (found ? "" : render(found.error())));
  check_found(render(found->not_kept), "step-000040.safetensors: cannot be written: File too large");
}

TEST_CASE("misfortunes: a model whose outputs are not finite is not saved, and ends the run") {
  temporary_directory dir;
  auto settings = digits_by("ddp", 2);
  settings.job.layers.back() = std::make_shared<numberless_layer>(settings.job.layers.back(),
                                                                  numberless_layer::where::untrained);
  settings.checkpoints = dir.path() / "model";
  const checkpoint_directory there{settings.checkpoints, 3};
  check_found(sentence_of(std::move(settings)),
              "the outputs of the model after 20 steps are not finite, and it is not saved");
  CHECK(there.steps()->empty());
}

TEST_CASE("misfortunes: an epoch's loss and accuracy are the means of its steps'") {
  auto settings = digits_by("ddp", 2);
  settings.epochs = 2;
  threaded_cluster on{2};
  double loss = 0, accuracy = 0;
  uint64_t epochs = 0;
  run_watcher watcher;
  watcher.step_done = [&](const step_report& x) {
    loss += x.loss / 20;
    accuracy += x.accuracy / 20;
  };
  watcher.epoch_done = [&](const epoch_report& x) {
    ++epochs;
    loss -= x.loss;
    accuracy -= x.accuracy;
  };
  auto found = train(on.system(), on.coordinator(), settings, watcher);
  REQUIRE_MESSAGE(found.engaged(), (found ? "" : render(found.error())));
  CHECK(epochs == 2);
  CHECK(std::abs(loss) < 1e-9);
  CHECK(std::abs(accuracy) < 1e-9);
}

TEST_CASE("misfortunes: the wait for enough free devices has a limit") {
  auto settings = digits_by("ddp", 3);
  settings.devices_limit = std::chrono::milliseconds{200};
  threaded_cluster on{2};
  auto found = train(on.system(), on.coordinator(), settings);
  REQUIRE(!found);
  check_found(render(found.error()), "2 ");
  check_found(render(found.error()), "3 ");
}

TEST_CASE("misfortunes: an error of data names the data and the sample") {
  auto settings = digits_by("ddp", 2);
  settings.data.training = std::make_shared<torn_digits>(settings.data.training);
  const auto found = sentence_of(std::move(settings));
  check_found(found, ": data: sample 17 of torn digits: digits.bin ends at byte 13328");
  CHECK(found.find("strategy") == std::string::npos);
}

TEST_CASE("misfortunes: two runs with the same settings write the same checkpoints, to the last byte") {
  temporary_directory dir;
  std::vector<std::string> files;
  for (const std::string name : {"one", "other"}) {
    auto settings = digits_by("ddp", 2);
    settings.deterministic = true;
    settings.checkpoints = dir.path() / name;
    threaded_cluster on{2};
    REQUIRE(train(on.system(), on.coordinator(), settings));
    const checkpoint_directory there{settings.checkpoints, 1};
    files.push_back(content_of(there.file_of(there.steps()->back())));
  }
  CHECK(files[0].size() > 1000);
  CHECK(files[0] == files[1]);
}

TEST_CASE("misfortunes: an exception of the program's `stops` is reported when the trainer has exited") {
  run_watcher watcher;
  watcher.stops = [steps = 0]() mutable -> bool {
    return ++steps < 5 ? false : throw std::runtime_error{"the terminal is gone"};
  };
  check_found(sentence_of(digits_by("ddp", 2), watcher), "the terminal is gone");
}

TEST_CASE("misfortunes: an error for lack of memory names the layer and the bytes") {
  auto settings = digits_by("ddp", 2);
  settings.memory_bytes = 200'000;
  const auto found = sentence_of(std::move(settings));
  check_found(found, ", load_weights: 200960 bytes for the optimizer state of layer 0, step 0 (");
  check_found(found, " bytes in use; out of memory");
}

TEST_CASE("misfortunes: that ranks cannot share a layer is the first error, with a remedy") {
  auto settings = digits_by("3d", 2);
  settings.job.shape.parallel.chunks = 1;
  settings.job.layers[2] = std::make_shared<whole_layer>(settings.job.layers[2]);
  settings.job.shape.micro_batch = 1;
  check_found(render(check(settings)), "2 ranks cannot share layer 2, sociable tanh linear 16x16: it stays whole; "
                                       "--tensor 1 would do");
  settings.job.shape.parallel.tp = 1;
  check_found(render(check(settings)), "and 3d on 2 ranks has 1: --micro-batch 2");
}

TEST_CASE("misfortunes: a layer that needs two samples at once gets them, or the run is refused with a remedy") {
  auto with = [](std::string_view strategy, uint64_t micro_batch, uint64_t batch, uint32_t virtual_ranks = 0) {
    auto result = digits_by(strategy, 2);
    auto& job = result.job;
    job.shape.virtual_ranks = virtual_ranks;
    job.layers[2] = std::make_shared<sociable_layer>(job.layers[2]);
    job.shape.micro_batch = micro_batch;
    job.shape.global_batch = batch;
    return check(result);
  };
  check_found(render(with("1f1b", 1, 24)), "layer 2, sociable tanh linear 16x16, needs 2 samples at once, "
                                           "and 1f1b on 2 ranks has 1: --micro-batch 2 would do");
  // The last micro-batch of 25 has one sample; larger micro-batches need not change that.
  check_found(render(with("1f1b", 6, 25)), "has 1: --micro-batch 7 or --global-batch 26 would do");
  CHECK(!with("1f1b", 7, 25));
  CHECK(!with("1f1b", 6, 26));
  CHECK(!with("1f1b", 2, 24));
  check_found(render(with("ddp", 2, 3)), "and ddp on 2 ranks has 1: --global-batch 4 would do");
  check_found(render(with("1f1b", 2, 25)), "has 1: ");
  check_found(render(with("ddp-ordered", 2, 6, 6)), "has 1: --global-batch 12 or --virtual-ranks 3 would do");
  CHECK(!with("ddp-ordered", 2, 6, 3));
}
